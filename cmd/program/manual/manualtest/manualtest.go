// Package manualtest holds a program's commands to the rules that all commands follow, and its
// reference to its commands.
package manualtest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/manual"
)

// Reference fails unless the page of a program's commands is current. update writes it.
func Reference(t *testing.T, root *cobra.Command, page string, update bool) {
	t.Helper()
	root.InitDefaultHelpFlag()
	var want strings.Builder
	if err := manual.Markdown(root, &want); err != nil {
		t.Fatal(err)
	}
	if update {
		if err := os.WriteFile(page, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s is not what the commands say; run this test with -update\n%s", page, diff)
	}
}

// Rules fails if a command has no short description, or neither -o nor a reason in silent, which are
// the paths of commands below the program that print no data.
func Rules(t *testing.T, root *cobra.Command, silent map[string]string) {
	t.Helper()
	seen := map[string]bool{}
	for _, cmd := range manual.Below(root) {
		path := strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q is no short description", path, cmd.Short)
		}
		if cmd.HasAvailableSubCommands() {
			continue
		}
		_, is := silent[path]
		seen[path] = is
		if has := cmd.Flags().Lookup("output") != nil; has == is {
			t.Errorf("%s: -o is there: %v, and it is listed as printing no data: %v", path, has, is)
		}
		if cmd.InheritedFlags().Lookup("no-color") == nil {
			t.Errorf("%s has no flag --no-color", path)
		}
	}
	for path := range silent {
		if !seen[path] {
			t.Errorf("there is no command %q", path)
		}
	}
}
