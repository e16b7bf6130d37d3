// Package typescript checks the client against the contracts: its types are generated from them.
// The package itself is TypeScript; cmd/watchtower and proof/clients test it against running
// services.
package typescript

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

var update = flag.Bool("update", false, "write the types in src/contract")

// generator is the folder of openapi-typescript that cmd/testrun leaves behind, so that -update
// works without it.
const generator = "../../.tools/typescript"

// The types of every contract equal the output of openapi-typescript.
func TestTypesAreTheContract(t *testing.T) {
	tools := os.Getenv(testenv.TypeScriptVar)
	if tools == "" {
		tools = generator
	}
	if _, err := os.Stat(filepath.Join(tools, "node_modules", "openapi-typescript")); err != nil {
		if *update {
			t.Fatal("there is no openapi-typescript: go run ./cmd/testrun -run TestTypesAreTheContract ./clients/typescript -args -update")
		}
		tools = testenv.Need(t, testenv.TypeScriptVar)
	}
	dir := t.TempDir() // beside it node finds the generator
	modules, err := filepath.Abs(filepath.Join(tools, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("generate.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "generate.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	for contract, types := range contracts(t) {
		made := filepath.Join(dir, filepath.Base(types))
		cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "generate.mjs"), contract, made) //nolint:gosec // the test's own
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", contract, err, out)
		}
		text, err := os.ReadFile(made)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(types, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(types)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("%s is not what %s says; run go test ./clients/typescript -update\n%s", types, contract, diff)
		}
	}
}

// contracts returns the file of types for each contract: api/relay/openapi.yaml has relay.ts.
func contracts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join("..", "..", "api")
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) != "openapi.yaml" {
			return err
		}
		name := filepath.Base(filepath.Dir(path))
		if filepath.Dir(path) == root {
			name = "delivery"
		}
		found[path] = filepath.Join("src", "contract", strings.ToLower(name)+".ts")
		return err
	})
	if err != nil || len(found) < 2 {
		t.Fatalf("%v, %v", found, err)
	}
	return found
}
