package cmd

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// makefile is a Makefile's targets and simple variables.
type makefile struct {
	variables map[string]string
	needs     map[string][]string // a target's prerequisites
	recipes   map[string]string   // a target's commands, one per line
}

var (
	assignment = regexp.MustCompile(`^(\w+)\s*(?::=|\?=|=)\s*(.*)$`)
	rule       = regexp.MustCompile(`^([a-z][a-z -]*):([^=].*|)$`)
	variable   = regexp.MustCompile(`\$\((\w+)\)`)
)

func readMakefile(text string) *makefile {
	m := &makefile{variables: map[string]string{}, needs: map[string][]string{}, recipes: map[string]string{}}
	var targets []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		recipe, isRecipe := strings.CutPrefix(line, "\t")
		if isRecipe {
			recipe = strings.TrimLeft(recipe, "@+")
			for _, target := range targets {
				if !strings.HasPrefix(recipe, "-") { // make ignores its failure
					m.recipes[target] += recipe
				}
			}
			continue
		}
		line, _, _ = strings.Cut(strings.TrimSpace(line), "##")
		if found := assignment.FindStringSubmatch(line); found != nil {
			m.variables[found[1]] = found[2]
		} else if found := rule.FindStringSubmatch(line); found != nil {
			targets = strings.Fields(found[1])
			for _, target := range targets {
				m.needs[target] = append(m.needs[target], strings.Fields(found[2])...)
				m.recipes[target] += ""
			}
		}
	}
	return m
}

// invoke returns the test commands that make runs for its arguments: targets, and variables.
func (m *makefile) invoke(arguments []string) (all []testRun, err error) {
	given := *m
	given.variables = map[string]string{}
	for name, value := range m.variables {
		given.variables[name] = value
	}
	var targets []string
	for _, argument := range arguments {
		if found := assignment.FindStringSubmatch(argument); found != nil {
			given.variables[found[1]] = found[2]
		} else if !strings.HasPrefix(argument, "-") {
			targets = append(targets, argument)
		}
	}
	for _, target := range targets {
		found, err := given.target(target, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (m *makefile) target(name string, within []string) (all []testRun, err error) {
	recipe, known := m.recipes[name]
	if !known || slices.Contains(within, name) {
		return nil, fmt.Errorf("make has no target %s, or it needs itself", name)
	}
	for _, needed := range m.needs[name] {
		found, err := m.target(needed, append(within, name))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	recipe = variable.ReplaceAllStringFunc(recipe, func(reference string) string {
		if value, known := m.variables[variable.FindStringSubmatch(reference)[1]]; known {
			return value
		}
		return reference
	})
	found, err := shell{m}.testRuns(strings.ReplaceAll(recipe, "$$", "$"))
	return append(all, found...), err
}
