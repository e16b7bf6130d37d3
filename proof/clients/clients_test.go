package clients_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

func newGoClient(w *world) goClient {
	delivery, relay := w.gates["delivery"], w.gates["relay"]
	return goClient{
		client: &watchtower.Client{URL: delivery.url, Key: delivery.key},
		relay:  &watchtower.Relay{URL: relay.url, Key: relay.key},
	}
}

// The Go client takes the scenario, and every operation of the contracts is carried out.
func TestGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t, newGoClient(w), readScenario(t))
	w.covered(t, asNamed)
}

// The TypeScript client, packed and without viem, takes the same scenario wherever it is to run,
// and every operation of the contracts is carried out.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	app := packed(t)
	for name, start := range map[string]func(t *testing.T, w *world) client{
		"import":   func(t *testing.T, w *world) client { return w.nodeClient(t, app, "esm.mjs") },
		"require":  func(t *testing.T, w *world) client { return w.nodeClient(t, app, "cjs.cjs") },
		"workerd":  func(t *testing.T, w *world) client { return w.workerClient(t, app) },
		"chromium": func(t *testing.T, w *world) client { return w.pageClient(t, app) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(t, start(t, w), readScenario(t))
			w.covered(t, asNamed)
		})
	}
}

// The command line takes the scenario as far as it has commands.
func TestCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCommands(t, w)
	w.run(t, c, unhindered(readScenario(t)))
	w.covered(t, func(call string) string {
		if c.words(call) == "" {
			return ""
		}
		return c.name(call)
	})
}

// The first example of each client's README runs as it stands, twice with one intent.
func TestFirstFiveMinutes(t *testing.T) {
	t.Parallel()
	w, app := newWorld(t), packed(t)
	script, program := filepath.Join(app, "first.mjs"), filepath.Join(t.TempDir(), "main.go")
	check(t, os.WriteFile(script, []byte(firstBlock(t, "typescript", "js")), 0o600))
	check(t, os.WriteFile(program, []byte(firstBlock(t, "go", "go")), 0o600))
	env := []string{"RELAY_URL=" + w.gates["relay"].url, "RELAY_API_KEY=" + w.gates["relay"].key}
	var said []string
	for _, command := range [][]string{{"node", script}, {"node", script}, {"go", "run", program}} {
		done, err := rig.Run(w.ctx, nil, env, command[0], command[1:]...)
		check(t, err)
		if done.Status != 0 || !strings.HasPrefix(done.Stdout, "completed 1 0x") {
			t.Fatalf("%v: status %d: %s", command, done.Status, done.Says())
		}
		said = append(said, done.Stdout)
	}
	if said[0] != said[1] || said[0] != said[2] {
		t.Errorf("one key is several intents: %q", said)
	}
}

// firstBlock is the first block of code in a language, in the README of a client.
func firstBlock(t *testing.T, client, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "clients", client, "README.md"))
	check(t, err)
	_, rest, found := strings.Cut(string(text), "```"+language+"\n")
	block, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatalf("the README of %s has no block of %s", client, language)
	}
	return block
}
