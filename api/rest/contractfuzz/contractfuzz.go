// Package contractfuzz tests a running API against its contract: it makes requests from an OpenAPI
// document, valid ones and almost valid ones, and judges the answers. Only tests use it.
//
// An answer is a finding if its status is 500, if the contract does not have its status, its media type
// or the form of its body, or if it accepts a body that the contract refuses. Values from answers, such
// as hashes and cursors, are used in later requests. The same seed makes the same requests as long as
// the answers are the same.
package contractfuzz

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

type object = map[string]any

// Contract is an OpenAPI 3.1 document.
type Contract struct {
	doc        object
	compiler   *jsonschema.Compiler
	operations []operation
}

// operation is one method on one path.
type operation struct {
	method, path string
	pointer      string // of the operation in the document
	is           object
	parameters   []object
	tags         []any
}

// Parse reads a contract in YAML. With tags, it has only the operations with one of them.
func Parse(written []byte, tags ...string) (*Contract, error) {
	text, err := yaml.YAMLToJSON(written)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := &Contract{doc: doc.(object), compiler: jsonschema.NewCompiler()}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := c.compiler.AddResource("contract.json", doc); err != nil {
		return nil, err
	}
	paths := c.doc["paths"].(object)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods := paths[path].(object)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			o := operation{method: strings.ToUpper(method), path: path, is: methods[method].(object), pointer: pointer("paths", path, method)}
			for _, p := range list(o.is["parameters"]) {
				o.parameters = append(o.parameters, c.follow(p.(object)))
			}
			o.tags = list(o.is["tags"])
			if len(tags) == 0 || slices.ContainsFunc(o.tags, func(tag any) bool { return slices.Contains(tags, tag.(string)) }) {
				c.operations = append(c.operations, o)
			}
		}
	}
	return c, nil
}

// Operations are the operations as "METHOD path", in order.
func (c *Contract) Operations() (all []string) {
	for _, o := range c.operations {
		all = append(all, o.method+" "+o.path)
	}
	return all
}

// follow returns the target of a reference, and other objects as they are. Members beside a reference
// are left out: they describe it.
func (c *Contract) follow(o object) object {
	for {
		ref, is := o["$ref"].(string)
		if !is {
			return o
		}
		var here any = c.doc
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			here = here.(object)[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		o = here.(object)
	}
}

// pointer is a JSON pointer (RFC 6901) in its form for URIs.
func pointer(parts ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "{", "%7B", "}", "%7D")
	out := ""
	for _, part := range parts {
		out += "/" + escape.Replace(part)
	}
	return out
}

// valid checks a value against the schema at a pointer.
func (c *Contract) valid(at string, v any) error {
	schema, err := c.compiler.Compile("contract.json#" + at)
	if err != nil {
		return fmt.Errorf("the schema at %s: %w", at, err)
	}
	return schema.Validate(v)
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}
