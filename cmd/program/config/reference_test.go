package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference/configuration.md")

const (
	referencePath = "../../../docs/reference/configuration.md"
	examplePath   = "../../../deploy/watchtower.yaml"
	// preamblePath is the handwritten part of the reference.
	preamblePath = "testdata/preamble.md"
)

func TestReferenceIsCurrent(t *testing.T) {
	preamble, err := os.ReadFile(preamblePath)
	if err != nil {
		t.Fatal(err)
	}
	want := string(preamble) + reference(new(draft).table())
	if *update {
		if err := os.WriteFile(referencePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.FromSlash(referencePath))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference/configuration.md is not what the table says; run go test ./cmd/program/config -update\n%s", diff)
	}
}

// Each YAML block in the reference, and the example file, is a valid configuration.
func TestExamplesAreConfigurations(t *testing.T) {
	examples := map[string]string{}
	page, err := os.ReadFile(preamblePath)
	if err != nil {
		t.Fatal(err)
	}
	for i, rest := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		examples[fmt.Sprintf("block %d", i+1)] = block
	}
	example, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	examples[examplePath] = string(example)
	if len(examples) < 2 {
		t.Fatal("the reference has no example")
	}
	for name, text := range examples {
		c, _, err := input{file: text}.resolve(t)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := c.CheckServe(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, settings := input{file: string(example)}.mustResolve(t)
	if c.Store.Engine != Postgres || len(c.Chains) != 2 || settings["chains"].Origin == "default" {
		t.Errorf("the example does not say what it is for: %+v", c)
	}
}
