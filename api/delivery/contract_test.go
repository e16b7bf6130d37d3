package delivery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

type object = map[string]any

// parsed is openapi.yaml, read once. It is never modified.
var parsed = sync.OnceValues(func() (doc object, err error) {
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		return nil, err
	}
	return doc, yaml.Unmarshal(text, &doc)
})

func contract(t testing.TB) object {
	t.Helper()
	doc, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// at follows keys and references into the contract.
func at(t testing.TB, doc object, keys ...string) object {
	t.Helper()
	here := doc
	for _, key := range keys {
		next, ok := here[key].(object)
		if !ok {
			t.Fatalf("openapi.yaml has no %s", strings.Join(keys, " → "))
		}
		here = follow(t, doc, next)
	}
	return here
}

func follow(t testing.TB, doc, here object) object {
	t.Helper()
	if ref, ok := here["$ref"].(string); ok {
		return at(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return here
}

func TestContractNamesEveryRoute(t *testing.T) {
	doc := contract(t)
	var promised, served []string
	for path, methods := range at(t, doc, "paths") {
		for method := range methods.(object) {
			promised = append(promised, strings.ToUpper(method)+" "+path)
		}
	}
	for _, r := range allRoutes(Config{Config: rest.Config{CursorKey: make([]byte, rest.CursorKeyBytes), Limits: rest.DefaultLimits()}, Submit: new(commands.Submit)}) {
		served = append(served, r.Method+" "+r.Path)
	}
	slices.Sort(promised)
	slices.Sort(served)
	if diff := cmp.Diff(promised, served); diff != "" {
		t.Errorf("openapi.yaml (-) and the router (+) differ:\n%s", diff)
	}
}

// Every reference has a target, and every schema is used.
func TestContractIsWhole(t *testing.T) {
	doc := contract(t)
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			if ref, ok := v["$ref"].(string); ok {
				used[ref] = true
				follow(t, doc, v)
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(doc)
	for _, choice := range doc["security"].([]any) { // named, without a reference
		for name := range choice.(object) {
			used["#/components/securitySchemes/"+name] = true
		}
	}
	for kind, named := range at(t, doc, "components") {
		for name := range named.(object) {
			if ref := "#/components/" + kind + "/" + name; !used[ref] {
				t.Errorf("%s is not used", ref)
			}
		}
	}
}

func TestContractKnowsEveryStatus(t *testing.T) {
	var promised []tx.Status
	for _, s := range at(t, contract(t), "components", "schemas", "Status")["enum"].([]any) {
		promised = append(promised, tx.Status(s.(string)))
	}
	if diff := cmp.Diff(promised, tx.Statuses()); diff != "" {
		t.Error(diff)
	}
}

// checkAnswer checks a JSON answer against the contract. The contract must have the status. The
// answer must have all required members, no unknown ones, and values of the documented types.
func checkAnswer(t testing.TB, method, path string, res response) {
	t.Helper()
	doc := contract(t)
	place := []string{"paths", path, strings.ToLower(method), "responses", fmt.Sprint(res.status), "content", res.header.Get("Content-Type"), "schema"}
	schema := at(t, doc, place...)
	var v any
	d := json.NewDecoder(bytes.NewReader(res.body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s %s answered what is not JSON: %s", method, path, res.body)
	}
	for _, fault := range conforms(t, doc, schema, v, "") {
		t.Errorf("%s %s answered %d: %s", method, path, res.status, fault)
	}
	if err := matches(t, v, place...); err != nil {
		t.Errorf("%s %s answered %d: %v: %s", method, path, res.status, err, res.body)
	}
}

func conforms(t testing.TB, doc, schema object, v any, place string) (faults []string) {
	t.Helper()
	schema = follow(t, doc, schema)
	fault := func(format string, args ...any) {
		faults = append(faults, place+" "+fmt.Sprintf(format, args...))
	}
	if choices, ok := schema["oneOf"].([]any); ok {
		for _, choice := range choices {
			faults = conforms(t, doc, choice.(object), v, place)
			if len(faults) == 0 {
				return nil
			}
		}
		return faults
	}
	if want, ok := schema["const"]; ok && want != v {
		fault("is %v, not %v", v, want)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.ContainsFunc(enum, func(x any) bool { return fmt.Sprint(x) == fmt.Sprint(v) }) {
		fault("is %v, not one of %v", v, enum)
	}
	text, isString := v.(string)
	number, isNumber := v.(json.Number)
	_, isBool := v.(bool)
	list, isList := v.([]any)
	members, isObject := v.(object)
	switch schema["type"] {
	case "string":
		if pattern, ok := schema["pattern"].(string); !isString || ok && !regexp.MustCompile(pattern).MatchString(text) {
			fault("is %v", v)
		}
	case "integer":
		if _, ok := new(big.Int).SetString(string(number), 10); !isNumber || !ok {
			fault("is %v", v)
		}
	case "number":
		if !isNumber {
			fault("is %v", v)
		}
	case "boolean":
		if !isBool {
			fault("is %v", v)
		}
	case "array":
		if !isList {
			fault("is %v", v)
		}
		for i, x := range list {
			faults = append(faults, conforms(t, doc, schema["items"].(object), x, fmt.Sprintf("%s/%d", place, i))...)
		}
	case "object":
		if !isObject {
			fault("is %v", v)
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := members[name.(string)]; !ok {
				fault("lacks %s", name)
			}
		}
		described, _ := schema["properties"].(object)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			property, ok := described[name].(object)
			if !ok {
				fault("has %s, which is not described", name)
				continue
			}
			faults = append(faults, conforms(t, doc, property, members[name], place+"/"+name)...)
		}
	}
	return faults
}

func TestProblemsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	codes, reasons, ok := strings.Cut(string(text), "\n## Reasons")
	if !ok {
		t.Fatal("docs/reference/problems.md has no table of reasons")
	}
	var documented, table []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([0-9]+) \\| (.*) \\|$").FindAllStringSubmatch(codes, -1) {
		documented = append(documented, row[1]+" "+row[2]+" "+resttest.Unlinked(row[3]))
	}
	for _, k := range allKinds() {
		table = append(table, fmt.Sprintf("%s %d %s", k.Code, k.Status, k.Meaning))
	}
	slices.Sort(documented)
	slices.Sort(table)
	if diff := cmp.Diff(documented, table); diff != "" {
		t.Errorf("docs/reference/problems.md (-) and the table (+) differ:\n%s", diff)
	}
	documented = nil
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| .").FindAllStringSubmatch(reasons, -1) {
		documented = append(documented, row[1])
	}
	var faults []string
	for _, f := range []chain.Fault{
		chain.FaultHex, chain.FaultType, chain.FaultRLP, chain.FaultTrailing, chain.FaultNonCanonical, chain.FaultOverflow,
		chain.FaultSignature, chain.FaultFeePayer, chain.FaultUnprotected, chain.FaultWrongChain, chain.FaultTooLarge, chain.FaultInvalid,
	} {
		faults = append(faults, string(f))
	}
	if diff := cmp.Diff(documented, faults); diff != "" {
		t.Errorf("the reasons in docs/reference/problems.md (-) and the faults (+) differ:\n%s", diff)
	}
}

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range allKinds() {
		switch {
		case seen[string(k.Code)]:
			t.Errorf("%s has two rows", k.Code)
		case k.Title == "" || !strings.HasSuffix(k.Meaning, ".") || http.StatusText(k.Status) == "":
			t.Errorf("%s: status %d, title %q", k.Code, k.Status, k.Title)
		}
		seen[string(k.Code)] = true
	}
}
