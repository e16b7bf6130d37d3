package api

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

type object = map[string]any

// Every operation has one of the tags that the contract describes, every integer has a format, and
// every JSON body of a request or of a success has an example.
func TestContractsSpeakOneDialect(t *testing.T) {
	for _, path := range contracts {
		t.Run(path, func(t *testing.T) {
			doc, err := openapi3.NewLoader().LoadFromFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := doc.Validate(t.Context(), openapi3.EnableMultiError()); err != nil {
				t.Error(err)
			}
			used := map[string]bool{}
			for path, item := range doc.Paths.Map() {
				for method, operation := range item.Operations() {
					checkOperation(t, doc, method+" "+path, operation)
					for _, tag := range operation.Tags {
						used[tag] = true
					}
				}
			}
			for _, tag := range doc.Tags {
				if !used[tag.Name] {
					t.Errorf("the tag %s has no operation", tag.Name)
				}
			}
		})
	}
}

func checkOperation(t *testing.T, doc *openapi3.T, name string, operation *openapi3.Operation) {
	t.Helper()
	described := func(tag string) bool {
		found := doc.Tags.Get(tag)
		return found != nil && found.Description != ""
	}
	if len(operation.Tags) != 1 || !described(operation.Tags[0]) {
		t.Errorf("%s has the tags %v", name, operation.Tags)
	}
	if operation.RequestBody != nil {
		if media := operation.RequestBody.Value.Content["application/json"]; media == nil || !hasExample(media.Schema) {
			t.Errorf("%s: the body has no example", name)
		}
	}
	for status, response := range operation.Responses.Map() {
		for kind, media := range response.Value.Content {
			if strings.Contains(kind, "json") && !hasExample(media.Schema) {
				t.Errorf("%s: the %s of %s has no example", name, kind, status)
			}
		}
	}
}

func hasExample(schema *openapi3.SchemaRef) bool {
	switch {
	case schema == nil || schema.Value == nil:
		return false
	case len(schema.Value.Examples) > 0:
		return true
	case schema.Value.Items != nil:
		return hasExample(schema.Value.Items)
	}
	return len(schema.Value.OneOf) > 0 && !slices.ContainsFunc(schema.Value.OneOf, func(s *openapi3.SchemaRef) bool { return !hasExample(s) })
}

// Every integer has a format, and every example matches the schema that it is an example of.
func TestContractsExamplesMatch(t *testing.T) {
	for _, path := range contracts {
		t.Run(path, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text, err = yaml.YAMLToJSON(text)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			compiler := jsonschema.NewCompiler()
			compiler.DefaultDraft(jsonschema.Draft2020)
			if err := compiler.AddResource("contract.json", doc); err != nil {
				t.Fatal(err)
			}
			checked := 0
			everyObject(doc, "", func(at string, o object) {
				if o["type"] == "integer" && o["format"] == nil {
					t.Errorf("%s is an integer without a format", at)
				}
				examples, _ := o["examples"].([]any)
				for i, example := range examples {
					schema, err := compiler.Compile("contract.json#" + at)
					if err != nil {
						t.Fatal(err)
					}
					if err := schema.Validate(example); err != nil {
						t.Errorf("%s: example %d: %v", at, i, err)
					}
					checked++
				}
			})
			if checked == 0 {
				t.Error("there are no examples")
			}
		})
	}
}

// everyObject calls do for every object of a document that is no example, with its JSON pointer.
func everyObject(v any, at string, do func(at string, o object)) {
	escape := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "{", "%7B", "}", "%7D")
	switch v := v.(type) {
	case object:
		do(at, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "examples" {
				everyObject(v[name], at+"/"+escape.Replace(name), do)
			}
		}
	case []any:
		for i, x := range v {
			everyObject(x, fmt.Sprintf("%s/%d", at, i), do)
		}
	}
}
