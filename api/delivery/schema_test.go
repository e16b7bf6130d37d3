package delivery

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	contracts "github.com/tempo-watchtower/watchtower/api"
)

// The contract is valid OpenAPI 3.1, and its examples match its schemas.
func TestContractIsOpenAPI(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableMultiError()); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.OperationID == "" || seen[operation.OperationID] {
				t.Errorf("%s %s: the operationId %q is another's, or none", method, path, operation.OperationID)
			}
			seen[operation.OperationID] = true
		}
	}
}

// schemas compiles the contract's schemas on demand.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

// compiled reads the contract once, as JSON Schema 2020-12, which OpenAPI 3.1 uses.
var compiled = sync.OnceValues(func() (*schemas, error) {
	text, err := yaml.YAMLToJSON(contracts.Delivery())
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	s := &schemas{compiler: jsonschema.NewCompiler()}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	return s, s.compiler.AddResource("openapi.json", doc)
})

// matches checks a value, with its numbers as json.Number, against the schema at a place of the
// contract. References on the way are followed.
func matches(t testing.TB, v any, keys ...string) error {
	t.Helper()
	s, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	schema, err := s.compiler.Compile("openapi.json#" + pointer(t, contract(t), keys))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(v)
}

// asNumbers decodes JSON with its numbers as json.Number.
func asNumbers(t testing.TB, data []byte) (v any) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return v
}

// pointer is the JSON pointer (RFC 6901) of a place in the contract.
func pointer(t testing.TB, doc object, keys []string) string {
	t.Helper()
	escape := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "{", "%7B", "}", "%7D")
	text, here := "", doc
	for i, key := range keys {
		text += "/" + escape.Replace(key)
		here, _ = here[key].(object)
		if ref, ok := here["$ref"].(string); ok && i < len(keys)-1 {
			text = strings.TrimPrefix(ref, "#")
			here = follow(t, doc, here)
		}
	}
	return text
}
