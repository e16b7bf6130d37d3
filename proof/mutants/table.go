package main

import "strings"

// mutant is a plausible defect, made on purpose, that must be found.
type mutant struct {
	Name   string
	Breaks string // the promises that it breaks
	Is     string // a description in one sentence
	// Masked names other guards that alone catch the defect; they are removed together with it.
	Masked string
	Edits  []edit
	// Relay runs it in worlds with a relay half.
	Relay bool
	// Hostile runs it in worlds with hostile clients and pages; Twins in twin worlds, run with
	// and without them.
	Hostile, Twins bool
	// Cluster runs it in worlds with the log in an EventStoreDB cluster.
	Cluster bool
	// Test finds a mutant below the simulation; nil: worlds find it.
	Test *command
}

// edit is an exact replacement in a file of the module. Old occurs there once. In New the word
// AWAKE is true while the mutant is awake; otherwise New must behave like Old.
type edit struct{ File, Old, New string }

// command is a test that fails with a mutant, and passes without it.
type command struct{ Package, Run string }

// name is the test's name for people.
func (c command) name() string {
	names := strings.NewReplacer("^", "", "$", "", "(", "", ")", "", "|", " or ").Replace(c.Run)
	return c.Package + " " + names
}

// mutants returns all mutants.
func mutants() []mutant {
	var all []mutant
	for _, some := range [][]mutant{
		acceptance(), sending(), verdicts(), schedule(), owners(), canceling(), sealing(), lanes(), wishes(), hooks(), stores(), clients(), neighbors(), shares(), searches(), glimpses(), settling(), costs(), crowding(), groups(), claims(), nodes(), asked(), relayed(), clusters(), repeated(), joins(), receipts(),
	} {
		all = append(all, some...)
	}
	return all
}
