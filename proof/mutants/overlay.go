package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// awakeVar names the awake mutant of a process built with all of them. Without the variable all
// are asleep, and the process behaves like the product.
const awakeVar = "WATCHTOWER_MUTANT"

// asleep is the source file added to each package with mutants.
const asleep = `package %s

import (
	"os"
	"sync"
)

var mutantName = os.Getenv("` + awakeVar + `")

var mutantMemory sync.Map

func mutantAwake(name string) bool { return mutantName == name }
`

// change is a replacement at an offset of a file.
type change struct {
	from, to int
	text     string
}

// mutated applies the edits of all mutants to the files of the module below root. It returns the
// changed files by name. An edit that does not apply is an error, so that the table keeps up
// with the code.
func mutated(root string, all []mutant) (map[string][]byte, error) {
	changes := map[string][]change{}
	texts := map[string]string{}
	for _, m := range all {
		for _, e := range m.Edits {
			if _, read := texts[e.File]; !read {
				text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
				if err != nil {
					return nil, fmt.Errorf("%s: %w", m.Name, err)
				}
				texts[e.File] = string(text)
			}
			if n := strings.Count(texts[e.File], e.Old); n != 1 {
				return nil, fmt.Errorf("%s: %s has %d times, not once: %s", m.Name, e.File, n, e.Old)
			}
			at := strings.Index(texts[e.File], e.Old)
			changes[e.File] = append(changes[e.File], change{at, at + len(e.Old), strings.ReplaceAll(e.New, "AWAKE", fmt.Sprintf("mutantAwake(%q)", m.Name))})
		}
	}
	files := map[string][]byte{}
	for name, text := range texts {
		changed, err := changed(text, changes[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = []byte(changed)
		files[path.Join(path.Dir(name), "mutants_asleep.go")] = fmt.Appendf(nil, asleep, packageName(text))
	}
	return files, nil
}

// changed applies changes to a text; they must not overlap.
func changed(text string, changes []change) (string, error) {
	slices.SortFunc(changes, func(a, b change) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for _, c := range changes {
		if c.from < at {
			return "", fmt.Errorf("two edits speak of the same text: %s", text[c.from:c.to])
		}
		out.WriteString(text[at:c.from])
		out.WriteString(c.text)
		at = c.to
	}
	out.WriteString(text[at:])
	return out.String(), nil
}

var packageClause = regexp.MustCompile(`(?m)^package (\w+)`)

func packageName(text string) string { return packageClause.FindStringSubmatch(text)[1] }

// writeOverlay writes changed files to a folder, with the overlay file that makes the go command
// use them in place of the module's (go help build, -overlay). The module is not changed.
func writeOverlay(root, folder string, files map[string][]byte) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range files {
		to := filepath.Join(folder, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}
