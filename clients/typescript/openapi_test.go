// Package typescript checks the client against the contract: its types are generated from
// openapi.yaml. The package itself is TypeScript; cmd/watchtower tests it against the running
// service.
package typescript

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write src/api.ts")

func TestTypesAreTheContract(t *testing.T) {
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct{ Schemas yaml.MapSlice }
	}
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString("// Made from api/openapi.yaml by go test ./clients/typescript -update. Do not edit.\n")
	for _, schema := range doc.Components.Schemas {
		declare(&out, schema.Key.(string), schema.Value.(yaml.MapSlice))
	}
	const path = "src/api.ts"
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out.String(), string(got)); diff != "" {
		t.Errorf("%s is not what api/openapi.yaml says; run go test ./clients/typescript -update\n%s", path, diff)
	}
}

// declare writes one exported type.
func declare(out *strings.Builder, name string, schema yaml.MapSlice) {
	out.WriteString("\n")
	comment(out, "", schema)
	if value(schema, "properties") == nil || value(schema, "oneOf") != nil {
		fmt.Fprintf(out, "export type %s = %s\n", name, typeOf(schema, ""))
		return
	}
	fmt.Fprintf(out, "export interface %s %s\n", name, typeOf(schema, ""))
}

func comment(out *strings.Builder, indent string, schema yaml.MapSlice) {
	text, _ := value(schema, "description").(string)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	switch {
	case text == "":
	case len(lines) == 1:
		fmt.Fprintf(out, "%s/** %s */\n", indent, lines[0])
	default:
		fmt.Fprintf(out, "%s/**\n", indent)
		for _, line := range lines {
			out.WriteString(strings.TrimRight(indent+" * "+line, " ") + "\n")
		}
		fmt.Fprintf(out, "%s */\n", indent)
	}
}

// typeOf returns a schema as a TypeScript type.
func typeOf(schema yaml.MapSlice, indent string) string {
	if ref, ok := value(schema, "$ref").(string); ok {
		return ref[strings.LastIndex(ref, "/")+1:]
	}
	if list, ok := value(schema, "oneOf").([]any); ok {
		return union(list, func(v any) string { return typeOf(v.(yaml.MapSlice), indent) })
	}
	if list, ok := value(schema, "enum").([]any); ok {
		return union(list, literal)
	}
	if only := value(schema, "const"); only != nil {
		return literal(only)
	}
	switch kind, _ := value(schema, "type").(string); kind {
	case "string":
		if pattern, _ := value(schema, "pattern").(string); strings.HasPrefix(pattern, "^0x") {
			return "`0x${string}`"
		}
		return "string"
	case "integer", "number":
		return "number"
	case "boolean":
		return "boolean"
	case "array":
		items, ok := value(schema, "items").(yaml.MapSlice)
		if !ok {
			return "unknown[]"
		}
		of := typeOf(items, indent)
		if strings.Contains(of, " | ") {
			of = "(" + of + ")"
		}
		return of + "[]"
	case "object":
		return members(schema, indent)
	}
	return "unknown"
}

var isName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func members(schema yaml.MapSlice, indent string) string {
	properties, _ := value(schema, "properties").(yaml.MapSlice)
	if len(properties) == 0 {
		of := "unknown"
		if more, ok := value(schema, "additionalProperties").(yaml.MapSlice); ok {
			of = typeOf(more, indent)
		}
		return "Record<string, " + of + ">"
	}
	required := map[any]bool{}
	list, _ := value(schema, "required").([]any)
	for _, name := range list {
		required[name] = true
	}
	var out strings.Builder
	out.WriteString("{\n")
	inner := indent + "  "
	for _, p := range properties {
		property := p.Value.(yaml.MapSlice)
		comment(&out, inner, property)
		name, optional := fmt.Sprint(p.Key), "?"
		if !isName.MatchString(name) {
			name = fmt.Sprintf("'%s'", name)
		}
		if required[p.Key] {
			optional = ""
		}
		fmt.Fprintf(&out, "%s%s%s: %s\n", inner, name, optional, typeOf(property, inner))
	}
	return out.String() + indent + "}"
}

func union(list []any, of func(any) string) string {
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = of(v)
	}
	return strings.Join(all, " | ")
}

func literal(v any) string {
	if s, ok := v.(string); ok {
		return "'" + s + "'"
	}
	return fmt.Sprint(v)
}

func value(m yaml.MapSlice, key string) any {
	for _, item := range m {
		if item.Key == key {
			return item.Value
		}
	}
	return nil
}
