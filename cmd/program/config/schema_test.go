package config

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiled(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("settings.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("settings.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fits reports whether a file is valid by the schema.
func fits(t *testing.T, s *jsonschema.Schema, file string) error {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(file))
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

// The schema accepts the files that the program accepts: the examples, and every default.
func TestSchemaAcceptsConfigurations(t *testing.T) {
	s := compiled(t, Schema("watchtower"))
	example, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{string(example), "scheduler:\n", "chains: 1=http://a\n", "quota: {}\n"}
	page, err := os.ReadFile(preamblePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, rest := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		files = append(files, block)
	}
	for _, row := range new(draft).table() {
		if row.standard == "" {
			continue
		}
		value := row.standard
		if row.kind == text {
			value = `"` + value + `"`
		}
		files = append(files, inSections(row.path, value))
		if row.kind == duration && strings.HasPrefix(row.allowed, "0s") {
			files = append(files, inSections(row.path, "0"))
		}
	}
	for _, file := range files {
		if err := fits(t, s, file); err != nil {
			t.Errorf("%v\n%s", err, file)
		}
		if _, _, err := (input{file: file}).resolve(t); err != nil {
			t.Errorf("the program refuses what the schema accepts: %v\n%s", err, file)
		}
	}
}

// inSections is a file with one setting.
func inSections(path, value string) string {
	section, name, is := strings.Cut(path, ".")
	if !is {
		return path + ": " + value + "\n"
	}
	return section + ":\n  " + name + ": " + value + "\n"
}

// Files that the program refuses for a name, a kind or a bound are refused by the schema.
func TestSchemaRefuses(t *testing.T) {
	s := compiled(t, Schema("watchtower"))
	for _, file := range []string{
		"listne: 127.0.0.1:1\n",
		"scheduler:\n  retry-min: 100\n",
		"scheduler:\n  retry-min: -1s\n",
		"scheduler:\n  windw: 3\n",
		"scheduler:\n  window: 0\n",
		"scheduler:\n  window: 99999\n",
		"scheduler:\n  window: \"3\"\n",
		"log:\n  level: loud\n",
		"profiling: 1\n",
		"chains:\n  - endpoints: [http://a]\n",
		"chains:\n  - {id: 1, endpoints: []}\n",
		"chains:\n  - {id: 1, endpoints: [{name: a}]}\n",
		"chains:\n  - {id: 1, endpoints: [http://a], colour: red}\n",
		"chains:\n  - {id: 1, name: two words, endpoints: [http://a]}\n",
	} {
		if _, _, err := (input{file: file}).resolve(t); err == nil {
			t.Errorf("the program accepts\n%s", file)
		}
		if err := fits(t, s, file); err == nil {
			t.Errorf("the schema accepts\n%s", file)
		}
	}
}
