package main

import "strings"

// mutant is a defect on purpose: one that somebody could make, and that has to be found.
type mutant struct {
	Name   string
	Breaks string // the promises that it breaks
	Is     string // what it is, in a sentence
	// Masked says which other guards it is that catch the defect alone; they are
	// taken away with it.
	Masked string
	Edits  []edit
	// Relay has it looked for in worlds with a relay half.
	Relay bool
	// Hostile has it looked for in worlds with hostile clients and pages; Twins in those that
	// are lived through with and without them.
	Hostile, Twins bool
	// Cluster has it looked for in worlds whose log is in an EventStoreDB cluster.
	Cluster bool
	// Test is how it is found that lies below the simulation; nil: worlds find it.
	Test *command
}

// edit is an exact replacement in a file of the module. Old occurs there once. In New
// the word AWAKE is true when the mutant is to bite; else what Old says is to happen.
type edit struct{ File, Old, New string }

// command is a test that fails because of a mutant, and passes without it.
type command struct{ Package, Run string }

// name is what people call the test.
func (c command) name() string {
	names := strings.NewReplacer("^", "", "$", "", "(", "", ")", "", "|", " or ").Replace(c.Run)
	return c.Package + " " + names
}

// mutants are all of them.
func mutants() []mutant {
	var all []mutant
	for _, some := range [][]mutant{
		acceptance(), sending(), verdicts(), schedule(), owners(), canceling(), sealing(), lanes(), wishes(), hooks(), stores(), clients(), neighbors(), shares(), nodes(), clusters(),
	} {
		all = append(all, some...)
	}
	return all
}
