package cmd

import (
	"os"
	"path"
	"strings"
	"testing"
)

// modules are the directories with a module of their own, so that the root module does not need
// their dependencies. The go command leaves them out of ./... at the root: the rules for every
// package are checked here for them.
func modules(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, file := range files(t) {
		if path.Base(file) == "go.mod" && file != "go.mod" {
			folders = append(folders, path.Dir(file))
		}
	}
	if len(folders) == 0 {
		t.Fatal("no module was found")
	}
	return folders
}

// notInModules are the packages that the modules' programs must not link.
var notInModules = map[string]string{
	module + "commands":            "they sign, and do nothing else",
	module + "projections":         "they sign, and do nothing else",
	module + "api":                 "they sign, and do nothing else",
	module + "infra/embedded":      "they keep nothing",
	module + "infra/postgres":      "they keep nothing",
	module + "infra/keys/keystest": "that is for tests",
	module + "infra/testenv":       "that is for tests",
	"testing":                      "that is for tests",
}

// Every module passes its tests, and its go.mod is right: go vet and go test fail if go.mod or
// go.sum lack something.
func TestModules(t *testing.T) {
	for _, folder := range modules(t) {
		t.Run(folder, func(t *testing.T) {
			t.Parallel() // they mostly wait
			goCommand(t, folder, "vet", "./...")
			t.Logf("%s", goCommand(t, folder, "test", "./..."))
			for _, p := range listIn(t, folder, "-deps", "./...") {
				for name, reason := range notInModules {
					if within(p.ImportPath, name) && p.ImportPath != module+"api/webguard" { // every listener has it
						t.Errorf("%s links %s: %s", folder, strings.TrimPrefix(p.ImportPath, module), reason)
					}
				}
			}
		})
	}
}

// The reason for separate modules: the root module needs none of their dependencies.
func TestRootNeedsNothingOfModules(t *testing.T) {
	text, err := os.ReadFile(path.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"github.com/aws/", "cloud.google.com/", "golang.org/x/oauth2", "github.com/prometheus/prometheus", "github.com/nats-io/nats-server", "github.com/VictoriaMetrics/", "helm.sh/", "k8s.io/"} {
		if strings.Contains(string(text), name) {
			t.Errorf("the root's go.mod names %s", name)
		}
	}
}
