package clients_test

import (
	"slices"
	"testing"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

// The Go client takes the scenario, and every operation of the contracts is carried out.
func TestGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	delivery, relay := w.gates["delivery"], w.gates["relay"]
	w.run(t, "go", goClient{
		client: &watchtower.Client{URL: delivery.url, Key: delivery.key},
		relay:  &watchtower.Relay{URL: relay.url, Key: relay.key},
	})
	w.covered(t)
}

// The TypeScript client, packed and without viem, takes the same scenario wherever it is to run,
// and every operation of the contracts is carried out.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	app := packed(t)
	for name, start := range map[string]func(w *world) client{
		"import":   func(w *world) client { return w.nodeClient(t, app, "esm.mjs") },
		"require":  func(w *world) client { return w.nodeClient(t, app, "cjs.cjs") },
		"workerd":  func(w *world) client { return w.workerClient(t, app) },
		"chromium": func(w *world) client { return w.pageClient(t, app) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(t, "typescript", start(w))
			w.covered(t)
		})
	}
}

// covered lists the operations of all contracts that no step has used. The list must be empty.
func (w *world) covered(t *testing.T) {
	t.Helper()
	var uncovered []string
	for _, name := range contracts(t) {
		for _, o := range operationsOf(t, contractPath(name)) {
			if w.done[name+"."+o.id] == nil {
				uncovered = append(uncovered, name+"."+o.id)
			}
		}
	}
	slices.Sort(uncovered)
	for _, o := range uncovered {
		t.Errorf("the client does not cover %s", o)
	}
}
