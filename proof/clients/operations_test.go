package clients_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

var update = flag.Bool("update", false, "write docs/reference/operations.md")

// row is how the clients call one operation.
type row struct {
	Call string // in the scenario, and of the TypeScript client
	Go   string // type and method
}

// rows reads the table of operations: by contract and operation.
func rows(t *testing.T) map[string]map[string]row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "operations.yaml"))
	check(t, err)
	var all map[string]map[string]row
	check(t, yaml.UnmarshalWithOptions(text, &all, yaml.Strict()))
	return all
}

// Every operation of every contract has a row, and its methods exist. docs/reference/operations.md
// shows the rows. TestGo, TestTypeScript and TestCommands show that the cells are true.
func TestOperations(t *testing.T) {
	t.Parallel()
	all, steps := rows(t), map[string]bool{}
	for _, s := range readScenario(t).Steps {
		steps[s.Call] = true
	}
	for _, contract := range contracts(t) {
		known := map[string]bool{}
		for _, o := range operationsOf(t, contractPath(contract)) {
			known[o.id] = true
			r, ok := all[contract][o.id]
			if !ok {
				t.Errorf("testdata/operations.yaml has no row for %s of the contract of %s", o.id, contract)
				continue
			}
			if !steps[r.Call] {
				t.Errorf("%s: no step of the scenario calls %s", o.id, r.Call)
			}
			if !hasMethod(r.Go) {
				t.Errorf("%s: the Go client has no %s", o.id, r.Go)
			}
		}
		for id := range all[contract] {
			if !known[id] {
				t.Errorf("testdata/operations.yaml has a row for %s, which is in no contract", id)
			}
		}
	}
	page := filepath.Join("..", "..", "docs", "reference", "operations.md")
	want := render(t, all)
	if *update {
		check(t, os.WriteFile(page, []byte(want), 0o644))
	}
	got, err := os.ReadFile(page)
	check(t, err)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference/operations.md is not what the clients do; run go test ./proof/clients -run TestOperations -update\n%s", diff)
	}
}

// hasMethod reports whether a type of the Go client has a method.
func hasMethod(name string) bool {
	of, method, _ := strings.Cut(name, ".")
	types := map[string]reflect.Type{
		"Client": reflect.TypeFor[*watchtower.Client](), "Relay": reflect.TypeFor[*watchtower.Relay](), "Webhooks": reflect.TypeFor[watchtower.Webhooks](),
	}
	known, ok := types[of]
	if !ok {
		return false
	}
	_, ok = known.MethodByName(method)
	return ok
}

// render writes the page.
func render(t *testing.T, all map[string]map[string]row) string {
	t.Helper()
	var page strings.Builder
	page.WriteString(`# Operations

For developers who look for the call of an operation in a client or at the command line. Every
operation of every contract is here. ` + "`TestOperations`" + ` of [proof/clients](../../proof/clients) compares the
rows with the contracts and writes this page.

Each cell is tested by a call of the real programs: all calls are steps of
[one scenario](../../proof/clients/testdata/scenario.yaml), which ` + "`TestGo`, `TestTypeScript` and `TestCommands`" + `
run. A test fails if the operation in its row was not carried out by the call in its cell.
Commands without a client's call, such as ` + "`tx inspect`" + `, are not listed.
`)
	for _, contract := range contracts(t) {
		fmt.Fprintf(&page, "\n## %s\n\n[%s](%s)\n\n| operation | TypeScript | Go | command |\n|---|---|---|---|\n",
			titles()[contract], strings.TrimPrefix(contractPath(contract), "../../"), contractPath(contract))
		operations := operationsOf(t, contractPath(contract))
		slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.id, b.id) })
		for _, o := range operations {
			r := all[contract][o.id]
			command := commands{}.words(r.Call)
			if command != "" {
				command = "`" + command + "`"
			}
			fmt.Fprintf(&page, "| `%s` | `%s` | `%s` | %s |\n", o.id, r.Call, r.Go, command)
		}
	}
	return page.String()
}

func titles() map[string]string {
	return map[string]string{"delivery": "Delivery", "relay": "Relay", "operator": "Operators"}
}

// covered fails for each operation of a contract that its call has not carried out; name makes a
// call's name as the client reports it. The list must be empty.
func (w *world) covered(t *testing.T, name func(call string) string) {
	t.Helper()
	all := rows(t)
	for _, contract := range contracts(t) {
		for _, o := range operationsOf(t, contractPath(contract)) {
			call := name(all[contract][o.id].Call)
			if call != "" && !w.done[contract+"."+o.id][call] {
				t.Errorf("%s has not carried out %s of the contract of %s, but %v", call, o.id, contract, w.done[contract+"."+o.id])
			}
		}
	}
}

// asNamed is for a client that has every call.
func asNamed(call string) string { return call }
