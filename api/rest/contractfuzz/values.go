package contractfuzz

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	depthMax = 6  // of made values
	poolMax  = 64 // values of one name
	someMax  = 4  // elements of a made list, where its bounds allow fewer
)

// maker makes values.
type maker struct {
	*Contract
	random *rand.Rand
	// pool has values by the names under which answers and tests gave them.
	pool     map[string][]any
	patterns map[string]*regexp.Regexp // compiled
}

func (m *maker) chance(percent int) bool { return m.random.IntN(100) < percent }

func pick[T any](m *maker, all []T) T { return all[m.random.IntN(len(all))] }

// remember keeps the values of an answer by their names.
func (m *maker) remember(v any) {
	switch v := v.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch v[name].(type) {
			case string, json.Number:
				m.learn(name, v[name])
			default:
				m.remember(v[name])
			}
		}
	case []any:
		for _, x := range v {
			m.remember(x)
		}
	}
}

func (m *maker) learn(name string, v any) {
	if slices.Contains(m.pool[name], v) {
		return
	}
	if len(m.pool[name]) < poolMax {
		m.pool[name] = append(m.pool[name], v)
		return
	}
	m.pool[name][m.random.IntN(poolMax)] = v
}

// otherNames are the names under which answers have the value of a parameter.
var otherNames = map[string][]string{
	"hash": {"txHash"}, "cursor": {"nextCursor"}, "after": {"version", "sequence", "position"}, "endpoint": {"id"}, "intent": {"id"},
	"until": {"position"}, "Last-Event-ID": {"position"}, "address": {"address", "signer"}, "chain": {"chainId"}, "transactions": {"raw"}, "If-None-Match": {"etag"},
}

// known returns a value that was seen under a name and fits a schema.
func (m *maker) known(name string, schema object) (any, bool) {
	if !m.chance(80) {
		return nil, false
	}
	var all []any
	for _, n := range append([]string{name}, otherNames[name]...) {
		for _, v := range m.pool[n] {
			if m.fits(schema, v) {
				all = append(all, v)
			}
		}
	}
	if len(all) == 0 {
		return nil, false
	}
	return pick(m, all), true
}

// value makes a value of a schema. name is the member or parameter that it is for.
func (m *maker) value(name string, schema object, depth int) any {
	schema = m.follow(schema)
	if v, ok := m.known(name, schema); ok {
		return v
	}
	if examples := list(schema["examples"]); len(examples) > 0 && m.chance(40) {
		return pick(m, examples)
	}
	if v, is := schema["const"]; is {
		return v
	}
	if all := list(schema["enum"]); len(all) > 0 {
		return pick(m, all)
	}
	for _, choice := range []string{"oneOf", "anyOf", "allOf"} {
		if all := list(schema[choice]); len(all) > 0 {
			return m.value(name, pick(m, all).(object), depth)
		}
	}
	kind, _ := schema["type"].(string)
	if kinds := list(schema["type"]); len(kinds) > 0 {
		kind = pick(m, kinds).(string)
	}
	switch kind {
	case "object":
		return m.object(schema, depth)
	case "array":
		return m.array(name, schema, depth)
	case "string":
		return m.text(schema)
	case "integer", "number":
		return m.number(schema)
	case "boolean":
		return m.chance(50)
	case "null":
		return nil
	}
	return m.junk(depth)
}

// fits reports whether a known value has the kind that a schema wants.
func (m *maker) fits(schema object, v any) bool {
	for _, choice := range append(list(schema["oneOf"]), list(schema["anyOf"])...) {
		if m.fits(m.follow(choice.(object)), v) {
			return true
		}
	}
	switch v := v.(type) {
	case string:
		pattern, has := schema["pattern"].(string)
		return schema["type"] == "string" && (!has || m.pattern(pattern).MatchString(v))
	case json.Number:
		return schema["type"] == "integer"
	}
	return false
}

func (m *maker) pattern(text string) *regexp.Regexp {
	if m.patterns[text] == nil {
		m.patterns[text] = regexp.MustCompile(text)
	}
	return m.patterns[text]
}

func (m *maker) object(schema object, depth int) object {
	out := object{}
	properties, _ := schema["properties"].(object)
	required := list(schema["required"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth < depthMax && m.chance(40) {
			out[name] = m.value(name, properties[name].(object), depth+1)
		}
	}
	if more, is := schema["additionalProperties"].(object); is {
		for range m.random.IntN(someMax) {
			out[m.word()] = m.value("", more, depth+1)
		}
	}
	return out
}

func (m *maker) array(name string, schema object, depth int) []any {
	n := m.random.IntN(someMax)
	if least, is := schema["minItems"].(json.Number); is {
		if k, _ := least.Int64(); n < int(k) {
			n = int(k)
		}
	}
	out := make([]any, n)
	for i := range out {
		items, _ := schema["items"].(object)
		out[i] = m.value(name, items, depth+1)
	}
	return out
}

func (m *maker) number(schema object) any {
	bounds := []json.Number{"0", "1", "2", "7", "1000", "42431"}
	for _, bound := range []string{"minimum", "maximum"} {
		if n, is := schema[bound].(json.Number); is {
			bounds = append(bounds, n)
		}
	}
	return pick(m, bounds)
}

func (m *maker) text(schema object) string {
	if pattern, is := schema["pattern"].(string); is {
		return m.matching(pattern)
	}
	switch schema["format"] {
	case "uri":
		return pick(m, []string{"https://shop.example/hook", "https://127.0.0.1/a?b=c", "http://x", "ftp://a", "https://[::1]:1/"})
	case "date-time":
		return "2026-11-20T08:00:00Z"
	}
	return m.word()
}

// word makes a short text.
func (m *maker) word() string {
	return pick(m, []string{"a", "payroll", "1", "x-1", "0x", "0x12", "true", "head", "é", strings.Repeat("k", 1+m.random.IntN(70))})
}

// matching makes a text that matches a pattern.
func (m *maker) matching(pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(fmt.Sprintf("contractfuzz: the pattern %s: %v", pattern, err))
	}
	var out strings.Builder
	m.match(&out, parsed.Simplify())
	return out.String()
}

func (m *maker) match(out *strings.Builder, re *syntax.Regexp) {
	repeat := func(least, most int) {
		for range least + m.random.IntN(most-least+1) {
			m.match(out, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			out.WriteRune(c)
		}
	case syntax.OpCharClass:
		i := 2 * m.random.IntN(len(re.Rune)/2)
		out.WriteRune(re.Rune[i] + rune(m.random.IntN(int(re.Rune[i+1]-re.Rune[i])+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		out.WriteByte('a' + byte(m.random.IntN(26)))
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			m.match(out, sub)
		}
	case syntax.OpAlternate:
		m.match(out, pick(m, re.Sub))
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpStar:
		repeat(0, someMax)
	case syntax.OpPlus:
		repeat(1, 1+someMax)
	default: // the ends of a text
	}
}

// junk makes a value without regard to a schema.
func (m *maker) junk(depth int) any {
	all := []any{
		nil, true, false, "", "x", "0x", "\u0000", "\u202e", strings.Repeat("9", 400), "🂡", "../..", "' OR 1=1--", json.Number("-1"), json.Number("0"), json.Number("1.5"),
		json.Number("1e99"), json.Number("18446744073709551616"), json.Number("9223372036854775808"), []any{}, object{}, "1970-01-01T00:00:00Z", "near:testnet", "eip155:1",
	}
	if v := pick(m, all); depth >= depthMax || m.chance(80) {
		return v
	}
	return pick(m, []any{[]any{m.junk(depth + 1)}, object{m.word(): m.junk(depth + 1)}})
}

// spoil changes a value, or one value inside it.
func (m *maker) spoil(v any, depth int) any {
	switch v := v.(type) {
	case object:
		if len(v) > 0 && m.chance(70) {
			name := pick(m, slices.Sorted(maps.Keys(v)))
			if v = maps.Clone(v); m.chance(25) {
				delete(v, name)
			} else {
				v[name] = m.spoil(v[name], depth+1)
			}
			return v
		}
		if m.chance(50) {
			v = maps.Clone(v)
			v[m.word()] = m.junk(depth)
			return v
		}
	case []any:
		if len(v) > 0 && m.chance(80) {
			v = slices.Clone(v)
			i := m.random.IntN(len(v))
			v[i] = m.spoil(v[i], depth+1)
			return v
		}
	case string:
		switch m.random.IntN(5) {
		case 0:
			return v + m.word()
		case 1:
			return v[:m.random.IntN(len(v)+1)]
		case 2:
			return strings.ToUpper(v)
		}
	}
	return m.junk(depth)
}
