package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// schemaDialect is the dialect of JSON Schema that Schema uses.
const schemaDialect = "https://json-schema.org/draft/2020-12/schema"

// object is a JSON object.
type object = map[string]any

// durationPattern is the form of a duration, as time.ParseDuration reads it. Units have no sign here:
// no setting is negative.
const durationPattern = `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)$`

// Schema is the JSON Schema of a program's configuration file. more are the settings of a program that
// extends the watchtower. The schema accepts every file that the program accepts. The program checks
// more: forms of text, bounds of durations, and values that are valid alone but not together.
func Schema(program string, more ...Row) []byte {
	table := append(new(draft).table(), rowsOf(more)...)
	top := nested(table, func(s *setting) object { return s.schema() })
	top["$schema"] = schemaDialect
	top["title"] = "The configuration file of " + program
	top["properties"].(object)["chains"] = chainsSchema(table)
	text, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("config: a schema that is no JSON: %v", err)) // it is made of plain values
	}
	return text
}

// nested is the schema of a mapping with settings, each in its section.
func nested(table []*setting, of func(*setting) object) object {
	properties := object{}
	for _, s := range table {
		section, name, is := strings.Cut(s.path, ".")
		if !is {
			properties[section] = of(s)
			continue
		}
		if properties[section] == nil {
			properties[section] = closed(object{}, "object", "null") // null: all its lines are comments
		}
		properties[section].(object)["properties"].(object)[name] = of(s)
	}
	return closed(properties, "object")
}

// closed is the schema of a mapping without other names.
func closed(properties object, types ...string) object {
	return object{"type": types, "additionalProperties": false, "properties": properties}
}

// schema is the schema of a setting's value.
func (s *setting) schema() object {
	shape := object{"description": strings.ReplaceAll(s.doc, "`", "")}
	switch s.kind {
	case number:
		low, high, _ := strings.Cut(s.allowed, " to ")
		shape["type"], shape["minimum"], shape["maximum"] = "integer", json.Number(low), json.Number(high)
	case duration:
		shape["type"], shape["pattern"], shape["maximum"] = []string{"string", "integer"}, durationPattern, 0 // of numbers, only 0 needs no unit
		shape["minimum"] = 0
		shape["description"] = shape["description"].(string) + " From " + s.allowed + "."
	case toggle:
		shape["type"] = "boolean"
	case text:
		shape["type"] = "string"
		if s.words != nil {
			shape["enum"] = s.words
		}
	}
	if value, is := s.standardValue(); is {
		shape["default"] = value
	}
	return shape
}

// standardValue is the default in the form of the file; false if there is none.
func (s *setting) standardValue() (any, bool) {
	if s.standard == "" {
		return nil, false
	}
	switch s.kind {
	case number:
		return json.Number(s.standard), true
	case toggle:
		value, err := strconv.ParseBool(s.standard)
		return value, err == nil
	case text, duration:
	}
	return s.standard, true
}

// chainsSchema is the schema of the setting chains: the text form, or the list.
func chainsSchema(table []*setting) object {
	var own []*setting
	var about string
	for _, s := range table {
		if s.path == "chains" {
			about = strings.ReplaceAll(s.doc, "`", "")
		}
		if s.own != nil {
			own = append(own, s)
		}
	}
	whole := func(low, high int64) object { return object{"type": "integer", "minimum": low, "maximum": high} }
	words := object{"type": "string", "minLength": 1}
	name := object{"type": "string", "pattern": fmt.Sprintf(`^[A-Za-z0-9._-]{1,%d}$`, nameMax)}
	endpoint := closed(object{
		"url": words, "websocket": words, "name": name,
		"rate": whole(0, rateMax), "burst": whole(0, burstMax), "daily": whole(0, dailyMax), "concurrency": whole(1, concurrencyMax),
	}, "object")
	endpoint["required"] = []string{"url"}
	entry := nested(own, func(s *setting) object {
		shape := s.schema()
		delete(shape, "default") // the value for all chains
		return shape
	})
	properties := entry["properties"].(object)
	properties["id"], properties["name"], properties["confirmations"] = whole(1, chainIDMax), name, whole(0, confirmationsMax)
	properties["endpoints"] = object{"type": "array", "minItems": 1, "maxItems": endpointsMax, "items": object{"anyOf": []object{words, endpoint}}}
	entry["required"] = []string{"id", "endpoints"}
	return object{
		"description": about,
		"anyOf":       []object{words, {"type": "array", "maxItems": chainsMax, "items": entry}},
	}
}
