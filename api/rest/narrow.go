package rest

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// narrowed returns a contract without the operations that a listener does not have, and without the
// components and tags that only these use. has reports whether the listener has an operation.
func narrowed(written []byte, has func(method, path string) bool) ([]byte, error) {
	var doc yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(written, &doc, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	paths := mapOf(valueOf(doc, "paths"))
	for i, path := range paths {
		paths[i].Value = only(mapOf(path.Value), func(method yaml.MapItem) bool {
			return has(strings.ToUpper(method.Key.(string)), path.Key.(string))
		})
	}
	set(doc, "paths", only(paths, func(path yaml.MapItem) bool { return len(mapOf(path.Value)) > 0 }))
	for dropped := true; dropped; { // a component may be the only user of another
		used := map[string]bool{}
		references(doc, used)
		dropped = false
		components := mapOf(valueOf(doc, "components"))
		for i, kind := range components {
			if kind.Key == "securitySchemes" {
				continue // named without a reference
			}
			all := mapOf(kind.Value)
			rest := only(all, func(one yaml.MapItem) bool { return used["#/components/"+kind.Key.(string)+"/"+one.Key.(string)] })
			dropped = dropped || len(rest) < len(all)
			components[i].Value = rest
		}
	}
	tags := map[string]bool{}
	for _, path := range mapOf(valueOf(doc, "paths")) {
		for _, method := range mapOf(path.Value) {
			for _, tag := range listOf(valueOf(mapOf(method.Value), "tags")) {
				tags[tag.(string)] = true
			}
		}
	}
	set(doc, "tags", slices.DeleteFunc(slices.Clone(listOf(valueOf(doc, "tags"))), func(tag any) bool {
		return !tags[valueOf(mapOf(tag), "name").(string)]
	}))
	return yaml.Marshal(doc)
}

// references collects the targets of all references in a part of a contract.
func references(v any, used map[string]bool) {
	switch v := v.(type) {
	case yaml.MapSlice:
		for _, item := range v {
			if target, is := item.Value.(string); is && item.Key == "$ref" {
				used[target] = true
			}
			references(item.Value, used)
		}
	case []any:
		for _, x := range v {
			references(x, used)
		}
	}
}

func only(all yaml.MapSlice, wanted func(yaml.MapItem) bool) yaml.MapSlice {
	return slices.DeleteFunc(slices.Clone(all), func(item yaml.MapItem) bool { return !wanted(item) })
}

func mapOf(v any) yaml.MapSlice {
	m, _ := v.(yaml.MapSlice)
	return m
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

func valueOf(m yaml.MapSlice, name string) any {
	for _, item := range m {
		if item.Key == name {
			return item.Value
		}
	}
	return nil
}

func set(m yaml.MapSlice, name string, value any) {
	for i, item := range m {
		if item.Key == name {
			m[i].Value = value
		}
	}
}
