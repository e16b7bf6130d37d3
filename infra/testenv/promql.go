package testenv

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// PromQL evaluates expressions of Prometheus by Prometheus's own code, in a process of its own:
// proof/promql says what it answers.
type PromQL struct {
	requests *json.Encoder
	answers  *json.Decoder
}

// Described is what an expression asks for.
type Described struct {
	Error   string
	Metrics []struct {
		Name   string
		Labels []string // that it selects by
	}
	Grouping []string // labels of its aggregations
}

// Scrape is the lines of each instance's metrics at a time.
type Scrape struct {
	At    int64               `json:"at"` // milliseconds since 1970
	Lines map[string][]string `json:"lines"`
}

// StartPromQL starts the program, until the end of the test. It ends the test, as [Need] does, if
// the program cannot be built.
func StartPromQL(t testing.TB) *PromQL {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), promQL(t)) //nolint:gosec // it was built here
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // its input ends, and so does it
		if err := cmd.Wait(); err != nil {
			t.Errorf("promql: %v", err)
		}
	})
	return &PromQL{json.NewEncoder(in), json.NewDecoder(out)}
}

// promQL returns the program's path: in the folder named by [ProgramsVar], or built now.
func promQL(t testing.TB) string {
	t.Helper()
	if folder := os.Getenv(ProgramsVar); folder != "" {
		return File(t, filepath.Join(folder, "promql"))
	}
	root, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tempo-watchtower/watchtower").Output()
	if err != nil {
		missing(t, "the go command does not know this module", "run the tests in the tree")
	}
	program := filepath.Join(t.TempDir(), "promql")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join(strings.TrimSpace(string(root)), "proof", "promql"), "-o", program, ".") //nolint:gosec // our own
	if out, err := cmd.CombinedOutput(); err != nil {
		missing(t, "proof/promql cannot be built: "+string(out), "let the go command fetch Prometheus's module")
	}
	return program
}

// ask sends a request and waits for its answer.
func (p *PromQL) ask(t testing.TB, request any) (a struct {
	Described []Described
	Holds     []bool
	Error     string
}) {
	t.Helper()
	if err := p.requests.Encode(request); err != nil {
		t.Fatal(err)
	}
	if err := p.answers.Decode(&a); err != nil {
		t.Fatal(err)
	}
	if a.Error != "" {
		t.Fatal(a.Error)
	}
	return a
}

// Describe describes expressions.
func (p *PromQL) Describe(t testing.TB, expressions ...string) []Described {
	t.Helper()
	return p.ask(t, map[string]any{"parse": expressions}).Described
}

// Look adds a scrape, which must be later than the last one, and reports for each expression
// whether it has a result then.
func (p *PromQL) Look(t testing.TB, s Scrape, expressions []string) []bool {
	t.Helper()
	return p.ask(t, map[string]any{"look": struct {
		Scrape

		Expressions []string `json:"expressions"`
	}{s, expressions}}).Holds
}
