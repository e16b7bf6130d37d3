package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// The operators' page names every command, in the row of its parent.
func TestPageNamesEveryCommand(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/relayer.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range Commands() {
		_, row, found := strings.Cut(string(page), "\n| `relayer "+parent.Name()+"` | ")
		if !found {
			t.Errorf("no row of the page is about relayer %s", parent.Name())
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		for _, cmd := range parent.Commands() {
			for _, name := range append(cmd.Aliases, cmd.Name()) {
				if !strings.Contains(row, "`"+name+"`") {
					t.Errorf("relayer %s %s is not in %q", parent.Name(), name, row)
				}
			}
			if cmd.Flags().Lookup("json") == nil || cmd.Flags().Lookup("url") == nil {
				t.Errorf("relayer %s %s lacks flags that all have", parent.Name(), cmd.Name())
			}
		}
	}
}

// Targets are parsed in the form in which they are printed, and invalid targets are refused.
func TestTargets(t *testing.T) {
	const one, other = "0x20c0000000000000000000000000000000000000", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
	for _, given := range [][]string{{"any"}, {one}, {one + ":0xa9059cbb", other}, {"create", one + ":0xa9059cbb,0x095ea7b3"}} {
		targets, err := parseTargets(given)
		if err != nil {
			t.Errorf("%q: %v", given, err)
		}
		if diff := cmp.Diff(strings.Join(given, " "), targetsText(targets)); diff != "" {
			t.Error(diff)
		}
	}
	for _, bad := range []string{"", "0x12", "any:0xa9059cbb", one + ":", one + ":0xa9", "create:0xa9059cbb", one + ":0xa9059cbb,"} {
		if targets, err := parseTargets([]string{bad}); err == nil {
			t.Errorf("%q is taken for %+v", bad, targets)
		}
	}
	if _, err := parseTargets([]string{one, "any"}); err == nil {
		t.Error("any beside another is taken")
	}
}

// Each cause of a failed delivery has its own description, which names the responsible side.
func TestWhatCameOfATry(t *testing.T) {
	said := map[string]bool{}
	for _, c := range []notice.Cause{
		notice.Forbidden, notice.Name, notice.Connect, notice.TLS, notice.Timeout, notice.Cut, notice.Protocol, notice.Unfit, notice.Off,
	} {
		text := came(c, 0)
		if said[text] || !strings.Contains(text, " ") {
			t.Errorf("%s is told as %q", c, text)
		}
		said[text] = true
	}
	for status, want := range map[int]string{500: "the endpoint answered 500 internal server error", 410: "the endpoint answered 410 gone", 599: "the endpoint answered 599"} {
		if got := came(notice.Status, status); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, want := (errNotDelivered{triedShown{Cause: notice.Name}}).Error(), "not delivered: the host name could not be resolved"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
