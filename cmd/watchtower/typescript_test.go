package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// The TypeScript client compiles, application code using it has the right types, and its own
// tests pass against the service.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	viem, compiler := testenv.Need(t, testenv.ViemVar), testenv.Need(t, testenv.TypeScriptVar)
	dir := filepath.Join(t.TempDir(), "client")
	check(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "clients", "typescript"))))
	modules := filepath.Join(dir, "node_modules")
	check(t, os.RemoveAll(modules)) // of somebody who works on the client
	check(t, os.Mkdir(modules, 0o755))
	for name, from := range map[string]string{"viem": viem, "typescript": compiler} {
		from, err := filepath.Abs(filepath.Join(from, "node_modules", name))
		check(t, err)
		check(t, os.Symlink(from, filepath.Join(modules, name)))
	}

	w := newWorld(t, func(_ *testing.T, dir string) []string {
		return []string{"--store", "embedded:" + filepath.Join(dir, "data")}
	}, "--block-time", "1")
	plain, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar), "--block-time", "1")
	check(t, err)
	t.Cleanup(func() { check(t, plain.Remove()) })
	check(t, plain.Start(w.ctx))
	w.chains = fmt.Sprintf("31337=%s;%s", plain.URL(), w.chains)
	s := w.service(t)
	s.Args[slices.Index(s.Args, "--confirmations")+1] = "42431=2;31337=2"
	check(t, s.Start(w.ctx))

	cases, err := filepath.Abs(filepath.Join("..", "..", "clients", "go", "testdata", "webhooks.json"))
	check(t, err)
	tsc := filepath.Join("node_modules", "typescript", "bin", "tsc")
	commands := [][]string{{tsc, "-p", "tsconfig.json"}, {tsc, "-p", "test/tsconfig.json"}}
	tests, err := filepath.Glob(filepath.Join(dir, "test", "*.test.mjs"))
	check(t, err)
	for _, file := range tests {
		commands = append(commands, []string{"--test", file})
	}
	for _, args := range commands {
		cmd := exec.CommandContext(w.ctx, "node", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "WATCHTOWER_URL="+s.URL, "WEBHOOK_CASES="+cases)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("node %v: %v\n%s", args, err, out)
		}
	}
	check(t, s.Stop(w.ctx))
}
