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
	"eventlog":    {},
	"domain":      {}, // and the root of eventlog
	"migrations":  {},
	"commands":    {"eventlog", "domain"},
	"projections": {"eventlog", "domain"},
	"infra":       {"eventlog", "domain", "migrations"},
	"api":         {"eventlog", "domain", "commands", "projections"},
	"cmd":         {"eventlog", "domain", "migrations", "commands", "projections", "infra", "api", "clients"},
	"clients":     {},
	"examples":    {"eventlog", "domain", "infra", "clients"},
	"proof":       {"eventlog", "domain", "migrations", "commands", "projections", "infra", "api", "cmd", "clients"},
}

// across are imports against the layers' order.
var across = []exception{
	{from: "domain", to: "eventlog", exact: true, reason: "events, versions and positions; what does IO lies below"},
	{from: "domain", to: "eventlog/eventtest", test: true, reason: "frozen samples of events"},
	{from: "cmd", to: "proof/promises", reason: "verify and doctor judge a log as the simulation does"},
	{from: "commands", to: "proof/promises", test: true, reason: "the promises are judged at every level"},
	{from: "projections", to: "proof/promises", test: true, reason: "the promises are judged at every level"},
	{from: "cmd/devnet", to: "proof/rig", reason: "the playground starts a chain as the tests do"},
	{from: "cmd", to: "proof/rig", test: true, reason: "it starts programs, nodes and stores for the tests of programs"},
	{from: "cmd", to: "proof/failover", test: true, reason: "two processes, one of which is killed, for the tests of programs"},
}

// forTests are additional layers that a layer's tests may import: tests use the real
// implementations instead of mocks, and infra's tests check them against the ports.
var forTests = map[string][]string{
	"eventlog":    {"domain", "infra", "migrations"}, // real stores and aggregates
	"commands":    {"infra", "migrations"},
	"projections": {"infra", "migrations", "commands"}, // they record the history to be folded
	"api":         {"infra", "migrations"},
	"infra":       {"commands"},
	"clients":     {"eventlog", "domain", "commands", "projections", "infra", "api"},
}

// An exception lets siblings import each other. From and To include all packages below them.
type exception struct {
	from, to string
	test     bool // only in tests
	exact    bool // only to itself, not what lies below it
	reason   string
}

var exceptions = []exception{
	{from: "domain", to: "domain/chain", reason: "the values every chain shares"},
	{from: "domain", to: "domain/fair", reason: "clients take turns in every queue alike"},
	{from: "domain", to: "domain/request", reason: "the form of idempotency keys, which both halves share"},
	{from: "domain/relay/intent", to: "domain/notice", reason: "the webhooks that a request names"},
	{from: "domain", to: "domain/payload", reason: "the signed bytes, which events only name"},
	{from: "infra/feed", to: "infra/embedded", test: true, reason: "it delivers the events of real stores"},
	{from: "infra/feed", to: "infra/postgres", test: true, reason: "it delivers the events of real stores"},
	{from: "infra/outward", to: "infra/feed", test: true, reason: "what it shows is given to consumers by it"},
	{from: "infra/whole", to: "infra/embedded", test: true, reason: "it shows the events of real stores"},
	{from: "infra/outward", to: "infra/embedded", test: true, reason: "it shows the events of real stores"},
	{from: "infra/metrics", to: "infra/feed", test: true, reason: "rules may ask for what consumers export"},
	{from: "infra/broker", to: "infra/feed", test: true, reason: "what is forwarded comes from a log"},
	{from: "infra/broker", to: "infra/embedded", test: true, reason: "what is forwarded comes from a log"},
	{from: "eventlog", to: "eventlog", reason: "the kernel's parts are used together"},
	{from: "commands", to: "commands", test: true, reason: "process managers are tested with the neighbours they work with"},
	{from: "projections/delivery/groups", to: "projections/delivery/transactions", test: true, reason: "its queries join the transactions' table"},
	{from: "api", to: "api/webguard", reason: "the guard of every listener, a leaf"},
	{from: "api/delivery", to: "api/rest", reason: "what all APIs share"},
	{from: "api/relay", to: "api/rest", reason: "what all APIs share"},
	{from: "api/jsonrpc", to: "api/rest", reason: "what all APIs share"},
	{from: "api/rpcroute", to: "api/rest", reason: "what all APIs share"},
	{from: "api/console", to: "api/rest", reason: "what all APIs share"},
	{from: "api/delivery", to: "api/rpcroute", reason: "what its route asks of JSON-RPC"},
	{from: "api/jsonrpc", to: "api/rpcroute", reason: "what delivery's route asks of it"},
	{from: "api/relay/wallets", to: "api/jsonrpc", reason: "the calls of wallets are read by it, and it answers their reads"},
	{from: "api/relay/wallets", to: "api/rpcroute", reason: "what the route says about a request"},
	{from: "api/relay/wallets", to: "api/delivery", test: true, reason: "its calls come in through delivery's route"},
	{from: "api/jsonrpc", to: "api/delivery", test: true, reason: "its calls come in through delivery's route"},
	{from: "projections/delivery/owners", to: "projections/delivery/transactions", test: true, reason: "the lists of transactions join its tables"},
	{from: "projections/delivery/owners", to: "projections/delivery/groups", test: true, reason: "the lists of groups join its tables"},
	{from: "infra/chain", to: "infra/chain/rlp", reason: "the decoders share one strict reader of RLP, a leaf"},
	{from: "infra", to: "infra/recent", reason: "the end of the log in memory, for stores on a server, a leaf"},
	{from: "infra", to: "infra/retryafter", reason: "what an answer's header says, a leaf"},
	{from: "infra", to: "infra/storetest", test: true, reason: "the contract every store passes"},
	{from: "infra", to: "infra/testenv", test: true, reason: "it brings the servers that tests need"},
	{from: "infra/keys", to: "infra/chain", test: true, reason: "what is signed is read back by the decoders"},
	{from: "infra/keys/keystest", to: "infra/chain/tempo", reason: "the contract of signers verifies with the decoder, which is not theirs"},
	{from: "infra", to: "infra/chain/chaintest", test: true, reason: "the chain that forgets, lies and forks on demand"},
	{from: "cmd", to: "cmd/internal", reason: "what programs share"},
	{from: "cmd", to: "cmd/program", reason: "what the programs share"},
	{from: "proof", to: "proof", reason: "one proof, of several packages"},
	{from: "cmd", to: "cmd", test: true, reason: "tests of programs run other programs"},
}

// bothHalves lists what may import packages of the relay although it is not one of them.
var bothHalves = []exception{
	{from: "proof", reason: "the whole is proved"},
	{from: "cmd/devnet", reason: "the playground has everything"},
	{from: "infra/storetest", reason: "the contract of a store that keeps both halves' tables"},
	{from: "infra/embedded", reason: "it keeps both halves' tables in one file"},
	{from: "infra/postgres", reason: "it keeps both halves' tables in one database"},
	{from: "infra/outward", reason: "it tells the state of intents, and only the relay links it"},
}

// withStores are what the stores bring into delivery: they keep the tables of both halves.
var withStores = []string{"domain/relay/intent", "domain/relay/rate"}

// mustNotLink lists, for each program, the packages that it must not contain. A name includes
// all packages below it.
var mustNotLink = map[string]map[string]string{
	"cmd/watchtower": {
		module + "infra/keys":                      "delivery never sees a private key",
		module + "infra/outward":                   "delivery is complete without the relay",
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
	if ofRelay(to) && !ofRelay(from) && !test && !relayToo(from) {
		return "delivery is complete without the relay: nothing outside …/relay and cmd/relayer imports it"
	}
	if from == "proof/promises" || within(from, "proof/promises") {
		if !test && layer(to) != "domain" && to != "eventlog" && !within(to, "proof/promises") {
			return "a judge of promises knows the events alone"
		}
	}
	for _, e := range across {
		if within(from, e.from) && within(to, e.to) && (test || !e.test) && (to == e.to || !e.exact) {
			return ""
		}
	}
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

// ofRelay reports whether a package belongs to the relay half.
func ofRelay(p string) bool {
	return within(p, "cmd/relayer") || slices.Contains(strings.Split(p, "/"), "relay")
}

// relayToo reports whether a package may know both halves.
func relayToo(from string) bool {
	for _, e := range bothHalves {
		if within(from, e.from) {
			return true
		}
	}
	return false
}

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		from, to string
		test, ok bool
	}{
		{"domain/delivery/tx", "domain/chain", false, true},
		{"domain/chain", "domain/delivery/tx", false, false},
		{"domain/delivery/group", "domain/delivery/tx", false, false},
		{"proof/promises", "domain/delivery/tx", false, true},
		{"domain/delivery/tx", "proof/promises", false, false},
		{"domain/delivery/tx", "infra/testenv", true, false},
		{"commands", "domain/delivery/tx", false, true},
		{"commands", "commands/delivery/watcher", false, false},
		{"commands/delivery/watcher", "commands", false, true},
		{"commands/delivery/watcher", "commands/delivery/scheduler", false, false},
		{"commands/delivery/watcher", "projections", false, false},
		{"commands/delivery/watcher", "infra/postgres", false, false},
		{"commands/delivery/watcher", "infra/embedded", true, true},
		{"projections/delivery/groups", "commands", false, false},
		{"projections/delivery/groups", "projections", false, true},
		{"projections/delivery/groups", "projections/delivery/transactions", false, false},
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
		{"api/rest", "commands", false, true},
		{"api/rest", "infra/postgres", false, false},
		{"api/rest", "api/webguard", false, true},
		{"api/rest", "api/delivery", false, false},
		{"api/rest", "api/delivery", true, false},
		{"api/rest", "api/relay", false, false},
		{"api/rest", "api/jsonrpc", false, false},
		{"api/rest", "api/rpcroute", false, false},
		{"api/delivery", "api", false, true},
		{"api/delivery", "api/rest", false, true},
		{"api/delivery", "api/relay", false, false},
		{"api/delivery", "api/jsonrpc", false, false},
		{"api/relay", "api/rest", false, true},
		{"api/relay", "api/delivery", false, false},
		{"api/relay", "api/delivery", true, false},
		{"api/jsonrpc", "api/delivery", false, false},
		{"api/jsonrpc", "api/delivery", true, true},
		{"cmd/watchtower", "cmd/program/config", false, true},
		{"cmd/watchtower", "cmd/devnet/wallet", false, false},
		{"cmd/watchtower", "cmd/devnet/wallet", true, true},
		{"cmd/relayer", "cmd/program/app", false, true},
		{"cmd/watchtower", "cmd/relayer/app", false, false},
		{"api/delivery", "cmd/program/config", false, false},
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
	if ours, ok := strings.CutPrefix(linked, module); ok && program == "cmd/watchtower" && ofRelay(ours) && !slices.Contains(withStores, ours) {
		return "delivery is complete without the relay"
	}
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
// infra/chain and in the two halves the third.
func component(p string) string {
	depth := 2
	elements := strings.Split(p, "/")
	if within(p, "infra/chain") || len(elements) > 2 && layer(p) != "api" && (elements[1] == "delivery" || elements[1] == "relay") {
		depth = 3
	}
	return path.Join(elements[:min(depth, len(elements))]...)
}

// within reports whether a package equals another, or is below it.
func within(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }
