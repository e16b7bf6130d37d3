// Package cmd checks rules for the whole tree: the allowed imports (this file), and rules for
// every file (tidy_test.go).
package cmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tempo-watchtower/watchtower/"

// layers are the top-level directories with Go code, and the layers that each may import. Within
// a layer, siblings do not import each other, but a package may import packages in its own
// directory, and the layer's root package.
var layers = map[string][]string{
	"domain":      {},
	"migrations":  {},
	"commands":    {"domain"},
	"projections": {"domain"},
	"infra":       {"domain", "migrations"},
	"api":         {"domain", "commands", "projections"},
	"cmd":         {"domain", "migrations", "commands", "projections", "infra", "api", "clients"},
	"clients":     {},
	"examples":    {"domain", "infra", "clients"},
	"simulation":  {"domain", "migrations", "commands", "projections", "infra", "api", "cmd"},
}

// forTests are additional layers that a layer's tests may import: tests use the real
// implementations instead of mocks, and infra's tests check them against the ports.
var forTests = map[string][]string{
	"commands":    {"infra", "migrations"},
	"projections": {"infra", "migrations", "commands"}, // they record the history to be folded
	"api":         {"infra", "migrations"},
	"infra":       {"commands"},
	"clients":     {"domain", "commands", "projections", "infra", "api"},
}

// An exception lets siblings import each other. From and To include all packages below them.
type exception struct {
	from, to string
	test     bool // only in tests
	reason   string
}

var exceptions = []exception{
	{from: "domain", to: "domain/chain", reason: "the values every chain shares"},
	{from: "domain", to: "domain/fair", reason: "clients take turns in every queue alike"},
	{from: "domain", to: "domain/event", reason: "what a store keeps"},
	{from: "domain", to: "domain/payload", reason: "the signed bytes, which events only name"},
	{from: "infra/feed", to: "infra/embedded", test: true, reason: "it delivers the events of real stores"},
	{from: "infra/feed", to: "infra/postgres", test: true, reason: "it delivers the events of real stores"},
	{from: "infra/outward", to: "infra/feed", test: true, reason: "what it shows is given to consumers by it"},
	{from: "infra/outward", to: "infra/embedded", test: true, reason: "it shows the events of real stores"},
	{from: "infra/metrics", to: "infra/feed", test: true, reason: "rules may ask for what consumers export"},
	{from: "infra/broker", to: "infra/feed", test: true, reason: "what is forwarded comes from a log"},
	{from: "infra/broker", to: "infra/embedded", test: true, reason: "what is forwarded comes from a log"},
	{from: "domain/promise", to: "domain", reason: "promises are checked over the events of all aggregates"},
	{from: "commands", to: "commands", test: true, reason: "process managers are tested with the neighbours they work with"},
	{from: "projections/groups", to: "projections/transactions", test: true, reason: "its queries join the transactions' table"},
	{from: "api", to: "api/webguard", reason: "the guard of every listener, a leaf"},
	{from: "projections/owners", to: "projections/transactions", test: true, reason: "the lists of transactions join its tables"},
	{from: "projections/owners", to: "projections/groups", test: true, reason: "the lists of groups join its tables"},
	{from: "infra/chain", to: "infra/chain/rlp", reason: "the decoders share one strict reader of RLP, a leaf"},
	{from: "infra", to: "infra/recent", reason: "the end of the log in memory, for stores on a server, a leaf"},
	{from: "infra", to: "infra/retryafter", reason: "what an answer's header says, a leaf"},
	{from: "infra", to: "infra/storetest", test: true, reason: "the contract every store passes"},
	{from: "infra", to: "infra/testenv", test: true, reason: "it brings the servers that tests need"},
	{from: "infra/keys", to: "infra/chain", test: true, reason: "what is signed is read back by the decoders"},
	{from: "infra/keys/keystest", to: "infra/chain/tempo", reason: "the contract of signers verifies with the decoder, which is not theirs"},
	{from: "infra", to: "infra/chain/chaintest", test: true, reason: "the chain that forgets, lies and forks on demand"},
	{from: "cmd", to: "cmd/internal", reason: "what programs share"},
	{from: "cmd/internal", to: "cmd/devnet/wallet", reason: "the rig's clients sign as the playground's do"},
	{from: "cmd/devnet", to: "cmd/watchtower", reason: "the playground runs the service in its own process"},
	{from: "cmd/relayer", to: "cmd/watchtower", reason: "the relay runs delivery, whose customer it is, in its own process"},
	{from: "cmd/bench", to: "cmd/devnet/wallet", reason: "the load is signed as the playground signs"},
	{from: "cmd/bench", to: "cmd/watchtower", reason: "to profile the service and the load alike, it runs it in a process of its own"},
	{from: "simulation", to: "simulation", reason: "one world, made of several packages"},
	{from: "cmd", to: "cmd", test: true, reason: "tests of programs run other programs"},
}

// mustNotLink lists, for each program, the packages that it must not contain. A name includes
// all packages below it.
var mustNotLink = map[string]map[string]string{
	"cmd/watchtower": {
		module + "infra/keys":                      "delivery never sees a private key",
		module + "commands/relayer":                "delivery is complete without the relay",
		module + "commands/intake":                 "delivery is complete without the relay",
		module + "commands/guard":                  "delivery is complete without the relay",
		module + "projections/intents":             "delivery is complete without the relay",
		module + "api/relay":                       "delivery is complete without the relay",
		module + "commands/notifier":               "delivery is complete without the relay",
		module + "infra/webhook":                   "delivery is complete without the relay",
		module + "infra/metrics/relay":             "delivery is complete without the relay",
		module + "infra/outward":                   "delivery is complete without the relay",
		module + "domain/lane":                     "delivery is complete without the relay",
		module + "domain/signer":                   "delivery is complete without the relay",
		module + "domain/safeguard":                "delivery is complete without the relay",
		module + "domain/budget":                   "delivery is complete without the relay",
		module + "domain/promise/safeguards":       "delivery is complete without the relay",
		module + "domain/promise/lanes":            "delivery is complete without the relay",
		module + "cmd/devnet":                      "the playground's wallet signs",
		module + "cmd/internal":                    "that is for tests and benchmarks",
		module + "infra/testenv":                   "that is for tests",
		module + "infra/storetest":                 "that is for tests",
		module + "infra/eventstoredb/esdbtest":     "that is for tests and for trying things out",
		module + "infra/chain/chaintest":           "that is for tests and the playground",
		"github.com/ethereum/go-ethereum/accounts": "a keystore holds private keys",
		"golang.org/x/crypto/scrypt":               "it opens keystores",
		"testing":                                  "what only tests use does not belong in the service",
	},
	"cmd/relayer": {
		module + "cmd/devnet":                      "the playground's keys are public knowledge",
		module + "cmd/internal":                    "that is for tests and benchmarks",
		module + "infra/testenv":                   "that is for tests",
		module + "infra/storetest":                 "that is for tests",
		module + "infra/eventstoredb/esdbtest":     "that is for tests and for trying things out",
		module + "infra/chain/chaintest":           "that is for tests and the playground",
		module + "infra/keys/keystest":             "that is for tests",
		"github.com/ethereum/go-ethereum/accounts": "infra/keys opens keystores by itself",
		"testing": "what only tests use does not belong in the program",
	},
}

// domainImports are the modules that the domain may use beside the standard library.
var domainImports = []string{"golang.org/x/crypto/sha3", "github.com/holiman/uint256"}

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestLayers(t *testing.T) {
	packages := list(t, "-e", "./...")
	for _, folder := range modules(t) {
		packages = append(packages, listIn(t, folder, "-e", "./...")...)
	}
	for _, p := range packages {
		from, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok {
			t.Errorf("%s lies in the module's root: a package belongs to a layer", p.ImportPath)
			continue
		}
		if _, known := layers[layer(from)]; !known {
			t.Errorf("%s: %s/ is no layer; a new one is named in cmd/layering_test.go, with what it may import", from, layer(from))
			continue
		}
		for _, imported := range p.Imports {
			report(t, from, imported, isTests(from))
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			report(t, from, imported, true)
		}
	}
}

// isTests reports whether a package of the domain is for tests, judging by its name.
func isTests(name string) bool {
	return strings.HasPrefix(name, "domain/") && strings.HasSuffix(name, "test")
}

func report(t *testing.T, from, imported string, test bool) {
	t.Helper()
	to, ours := strings.CutPrefix(imported, module)
	why := ""
	switch {
	case ours:
		why = forbidden(from, to, test)
	case layer(from) == "domain" && !test && strings.Contains(layer(imported), ".") && !slices.Contains(domainImports, imported):
		why = "beside the standard library, the domain has only " + strings.Join(domainImports, " and ")
	}
	if why != "" {
		of := ""
		if test {
			of = "a test of "
		}
		t.Errorf("%s%s imports %s: %s", of, from, strings.TrimPrefix(imported, module), why)
	}
}

// forbidden returns why one of our packages may not import another; empty if it may.
func forbidden(from, to string, test bool) string {
	below := layers[layer(from)]
	if test {
		below = slices.Concat(below, forTests[layer(from)])
	}
	if layer(from) != layer(to) {
		if slices.Contains(below, layer(to)) {
			return ""
		}
		return fmt.Sprintf("%s may import %s", layer(from), cmp.Or(strings.Join(below, ", "), "no other layer"))
	}
	if component(from) == component(to) || to == layer(to) {
		return ""
	}
	for _, e := range exceptions {
		if within(from, e.from) && within(to, e.to) && (test || !e.test) {
			return ""
		}
	}
	return fmt.Sprintf("siblings in %s do not import each other", layer(from))
}

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		from, to string
		test, ok bool
	}{
		{"domain/tx", "domain/chain", false, true},
		{"domain/chain", "domain/tx", false, false},
		{"domain/group", "domain/tx", false, false},
		{"domain/promise", "domain/tx", false, true},
		{"domain/tx", "domain/promise", false, false},
		{"domain/tx", "infra/testenv", true, false},
		{"commands", "domain/tx", false, true},
		{"commands", "commands/watcher", false, false},
		{"commands/watcher", "commands", false, true},
		{"commands/watcher", "commands/scheduler", false, false},
		{"commands/watcher", "projections", false, false},
		{"commands/watcher", "infra/postgres", false, false},
		{"commands/watcher", "infra/embedded", true, true},
		{"projections/groups", "commands", false, false},
		{"projections/groups", "projections", false, true},
		{"projections/groups", "projections/transactions", false, false},
		{"infra/postgres", "migrations", false, true},
		{"infra/postgres", "commands", false, false},
		{"infra/postgres", "commands", true, true},
		{"infra/postgres", "infra/testenv", false, false},
		{"infra/postgres", "infra/testenv/server", true, true},
		{"infra/postgres", "infra/embedded", true, false},
		{"infra/chain/tempo", "infra/chain/rlp", false, true},
		{"infra/chain/tempo", "infra/chain/ethereum", false, false},
		{"infra/chain/rlp", "infra/chain/tempo", false, false},
		{"infra/testenv/server", "infra/testenv", false, true},
		{"api", "commands", false, true},
		{"api", "infra/postgres", false, false},
		{"cmd/watchtower", "cmd/watchtower/config", false, true},
		{"cmd/watchtower", "cmd/devnet/wallet", false, false},
		{"cmd/watchtower", "cmd/devnet/wallet", true, true},
		{"cmd/relayer", "cmd/watchtower/app", false, true},
		{"cmd/watchtower", "cmd/relayer/app", false, false},
		{"api", "cmd/watchtower/config", false, false},
	} {
		why := forbidden(c.from, c.to, c.test)
		if (why == "") != c.ok {
			t.Errorf("%s imports %s (in a test: %v): %q", c.from, c.to, c.test, why)
		}
	}
}

func TestPrograms(t *testing.T) {
	for program := range mustNotLink {
		for _, p := range list(t, "-deps", "./"+program+"/...") {
			if why := kept(program, p.ImportPath); why != "" {
				t.Errorf("%s links %s: %s", program, p.ImportPath, why)
			}
		}
	}
}

// kept returns why a package may not be in a program; empty if it may.
func kept(program, linked string) string {
	for name, reason := range mustNotLink[program] {
		if within(linked, name) {
			return reason
		}
	}
	if strings.Contains(linked, "keystore") {
		return "a keystore holds private keys"
	}
	return ""
}

// Every package that handles private keys is forbidden in delivery, and so are the libraries
// that open them: the rule would find each.
func TestDeliveryIsKeptFreeOfKeys(t *testing.T) {
	const program = "cmd/watchtower"
	for _, p := range list(t, "./infra/keys/...", "./cmd/devnet/wallet") {
		if kept(program, p.ImportPath) == "" {
			t.Errorf("nothing keeps %s out of %s", p.ImportPath, program)
		}
	}
	for _, name := range []string{"golang.org/x/crypto/scrypt", "github.com/ethereum/go-ethereum/accounts/keystore"} {
		if kept(program, name) == "" {
			t.Errorf("nothing keeps %s out of %s", name, program)
		}
	}
}

// list runs go list on packages.
func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	return listIn(t, ".", args...)
}

// listIn is list for packages of the module in a folder.
func listIn(t *testing.T, folder string, args ...string) []goPackage {
	t.Helper()
	out := goCommand(t, folder, append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports"}, args...)...)
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatalf("go %s lists nothing", strings.Join(args, " "))
	}
	return packages
}

// goCommand runs the go command in a folder of the tree, and returns its output.
func goCommand(t *testing.T, folder string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = path.Join("..", folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s, in %s: %v\n%s%s", strings.Join(args, " "), folder, err, out, &stderr)
	}
	return out
}

// layer is the first element of a path.
func layer(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

// component is the directory of packages that belong together: the second level, and below
// infra/chain the third.
func component(p string) string {
	depth := 2
	if within(p, "infra/chain") {
		depth = 3
	}
	elements := strings.Split(p, "/")
	return path.Join(elements[:min(depth, len(elements))]...)
}

// within reports whether a package equals another, or is below it.
func within(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }
