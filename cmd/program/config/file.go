package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// fileMax is the maximum size in bytes of the configuration file: enough for every chain with
// every endpoint.
const fileMax = 256 << 10

// file is a configuration file being read. It is walked as a syntax tree, not decoded into a
// struct, so that every value has its line and every problem is found.
type file struct {
	name     string
	lines    []string
	resolver *resolver
}

// readFile reads the values of a file.
func (r *resolver) readFile(name, origin string, read func(string) ([]byte, error)) {
	refuse := func(text string) { r.problems = append(r.problems, Problem{origin, "", text}) }
	if name == "" {
		refuse("names no file")
		return
	}
	content, err := read(name)
	switch {
	case err != nil:
		refuse(fmt.Sprintf("read the configuration file: %v", err))
		return
	case len(content) > fileMax:
		refuse(fmt.Sprintf("%s has more than %d bytes", name, fileMax))
		return
	case !utf8.Valid(content):
		refuse(name + " is not UTF-8 text")
		return
	}
	f := &file{name: name, resolver: r}
	f.lines = strings.Split(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n")
	f.read(content)
}

func (f *file) read(content []byte) {
	tree, err := parse(content)
	if err != nil {
		f.unreadable(err)
		return
	}
	var body ast.Node
	for _, document := range tree.Docs {
		switch {
		case document.Body == nil:
		case body != nil:
			f.refuse(document.Body, "", "a second document is one too many")
			return
		default:
			body = document.Body
		}
	}
	if body != nil {
		f.fields("", body, f.sections())
	}
}

// parse reads YAML. It recovers from panics of the library.
func parse(content []byte) (tree *ast.File, err error) {
	defer func() {
		if recover() != nil {
			tree, err = nil, errors.New("not YAML")
		}
	}()
	// fields reports duplicate keys, with both their lines.
	return parser.ParseBytes(content, 0, parser.AllowDuplicateMapKey())
}

// unreadable reports a YAML syntax error.
func (f *file) unreadable(err error) {
	var syntax yaml.Error
	if !errors.As(err, &syntax) || syntax.GetToken() == nil || syntax.GetToken().Position == nil {
		f.problem(Problem{f.name, "", "is not YAML"})
		return
	}
	at := syntax.GetToken().Position
	f.problem(Problem{f.at(at.Line, at.Column), "", "not YAML: " + syntax.GetMessage() + f.quote(at.Line, at.Column, 1)})
}

// field is one name that a mapping may contain.
type field struct {
	name string
	read func(ast.Node)
}

// sections lists the sections and settings that the file may contain, from the table.
func (f *file) sections() (top []field) {
	members := map[string][]field{}
	for _, s := range f.resolver.table {
		section, name, nested := strings.Cut(s.path, ".")
		if !nested {
			top = append(top, field{s.path, func(n ast.Node) { f.value(s, n) }})
			continue
		}
		if members[section] == nil {
			top = append(top, field{section, func(n ast.Node) { f.fields(section, n, members[section]) }})
		}
		members[section] = append(members[section], field{name, func(n ast.Node) { f.value(s, n) }})
	}
	return top
}

// fields reads a mapping: known names, each once. A section with every line commented out is
// empty and allowed.
func (f *file) fields(path string, n ast.Node, known []field) {
	mapping, ok := n.(*ast.MappingNode)
	if _, empty := n.(*ast.NullNode); !ok {
		if !empty || path == "" {
			f.refuse(n, path, "must be names with values, each on a line: name: value")
		}
		return
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	seen := map[string]int{}
	for _, v := range mapping.Values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			f.refuse(v.Key, path, "a name must be plain text; anchors, aliases, merges and tags are not supported")
			continue
		}
		line, _ := position(v.Key)
		first, twice := seen[key.Value]
		seen[key.Value] = line
		i := index(names, key.Value)
		switch {
		case i < 0:
			f.unknown(v.Key, path, key.Value, names)
		case twice:
			f.refuse(v.Key, path, fmt.Sprintf("%s is already in line %d", key.Value, first))
		default:
			known[i].read(v.Value)
		}
	}
}

func index(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}

// unknown refuses a name, and suggests the closest known name.
func (f *file) unknown(key ast.Node, path, name string, names []string) {
	line, column := position(key)
	text := fmt.Sprintf("unknown setting %s; the nearest is %s", quote(name), nearest(name, names))
	if strings.Contains(name, "://") { // in braces, the colon of a URL is taken for the separator of name and value
		text = "a URL is read as the name of a setting: put it into quotes"
	}
	f.problem(Problem{f.at(line, column), path, text + f.quote(line, column, utf8.RuneCountInString(name))})
}

// value reads the value of a setting.
func (f *file) value(s *setting, n ast.Node) {
	if _, isList := n.(*ast.SequenceNode); isList && s.list != nil {
		s.origin = f.line(n)
		before := len(f.resolver.problems)
		s.list(f, n)
		s.bad = s.bad || len(f.resolver.problems) > before
		return
	}
	text, err := scalar(n, s.kind)
	if err != nil {
		f.resolver.refuse(s, f.line(n), err.Error())
		return
	}
	f.resolver.take(s, f.line(n), text)
}

// scalar returns the text of a value as written in the file. A number is not text, and text is
// not a number.
func scalar(n ast.Node, want kind) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		if want == text || want == duration {
			return n.Value, nil
		}
	case *ast.IntegerNode:
		if want == number || want == duration {
			return n.Token.Value, nil
		}
	case *ast.BoolNode:
		if want == toggle {
			return n.Token.Value, nil
		}
	case *ast.NullNode:
		return "", errors.New("has no value; leave it out to get the default")
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return "", errors.New("anchors, aliases and tags are not supported")
	}
	switch want {
	case text:
		return "", errors.New("must be text on one line; in quotes if it looks like something else")
	case duration:
		return "", errors.New("must be a duration such as 250ms, 3s or 24h")
	case number:
		return "", errors.New("must be a decimal number, without quotes")
	}
	return "", errors.New("must be true or false")
}

func (f *file) problem(p Problem) { f.resolver.problems = append(f.resolver.problems, p) }

// refuse reports a problem at a node.
func (f *file) refuse(n ast.Node, path, text string) {
	f.problem(Problem{f.line(n), path, text})
}

// line returns a node's place as file:line.
func (f *file) line(n ast.Node) string {
	line, _ := position(n)
	return fmt.Sprintf("%s:%d", f.name, line)
}

func (f *file) at(line, column int) string { return fmt.Sprintf("%s:%d:%d", f.name, line, column) }

func position(n ast.Node) (line, column int) {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1, 1
	}
	at := n.GetToken().Position
	return at.Line, at.Column
}

// keyStart matches a name at the start of a line, with its indentation or list mark.
var keyStart = regexp.MustCompile(`^[ \t-]*[A-Za-z0-9_.-]{1,64}:`)

// quote returns a line with a mark below a column. It shows only the name at the start of the
// line: a value may be a secret.
func (f *file) quote(line, column, width int) string {
	if line < 1 || line > len(f.lines) {
		return ""
	}
	whole := f.lines[line-1]
	shown := keyStart.FindString(whole)
	if rest := strings.TrimPrefix(whole, shown); shown != "" && strings.TrimSpace(rest) != "" {
		shown += " …"
	}
	if shown == "" || column < 1 {
		return ""
	}
	number := fmt.Sprint(line)
	text := fmt.Sprintf("\n    %s | %s", number, shown)
	if column > utf8.RuneCountInString(shown) {
		return text
	}
	mark := strings.Repeat("^", min(width, utf8.RuneCountInString(shown)-column+1))
	return text + fmt.Sprintf("\n    %s | %s%s", strings.Repeat(" ", len(number)), strings.Repeat(" ", column-1), mark)
}
