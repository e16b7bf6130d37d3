package rest

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// The HTML page that shows the contract: one template and one style, no script.
var (
	//go:embed contractpage.html
	pageTemplate string
	//go:embed contractpage.css
	pageStyle string
)

// pageStyleHash is the hash that lets the browser apply the page's own style only.
func pageStyleHash() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// contractPage is the template's data, in the order of the contract.
type contractPage struct {
	Style       template.CSS
	Title       string
	Description template.HTML
	Operations  []pageOperation
	Schemas     []pageSchema
}

type pageOperation struct {
	ID, Method, Path, Summary, Scope string
	Description                      template.HTML
	Parameters                       []pageRow
	Body                             template.HTML // the type of the request's body
	Answers                          []pageRow
}

type pageSchema struct {
	Name        string
	Description template.HTML
	Type        template.HTML // set if the schema has no properties
	Members     []pageRow
}

// pageRow is a row of a table: a parameter, a response or a member.
type pageRow struct {
	Name, In    string
	Required    bool
	Type        template.HTML
	Description template.HTML
}

// renderContract renders the page of a contract.
func renderContract(text []byte) ([]byte, error) {
	var doc yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	d := drawing{node{doc}}
	page := contractPage{
		Style: template.CSS(pageStyle), //nolint:gosec // ours
		Title: d.get("info", "title").text(), Description: prose(d.get("info", "description").text()),
	}
	for _, path := range d.get("paths").members() {
		for _, method := range path.value.members() {
			page.Operations = append(page.Operations, d.operation(path.name, method))
		}
	}
	for _, schema := range d.get("components", "schemas").members() {
		page.Schemas = append(page.Schemas, d.schema(schema))
	}
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, page)
	return out.Bytes(), err
}

// drawing renders parts of a contract; its node is the whole document.
type drawing struct{ node }

func (d drawing) operation(path string, method branch) pageOperation {
	o := method.value
	shown := pageOperation{
		ID: o.get("operationId").text(), Method: strings.ToUpper(method.name), Path: path, Summary: o.get("summary").text(),
		Scope: o.get("x-scope").text(), Description: prose(o.get("description").text()),
		Body: d.content(d.follow(o.get("requestBody")).get("content")),
	}
	for _, p := range o.get("parameters").items() {
		p = d.follow(p)
		shown.Parameters = append(shown.Parameters, pageRow{
			Name: p.get("name").text(), In: p.get("in").text(), Required: p.get("required").text() == "true",
			Type: d.kind(p.get("schema")), Description: prose(p.get("description").text()),
		})
	}
	for _, r := range o.get("responses").members() {
		answer := d.follow(r.value)
		shown.Answers = append(shown.Answers, pageRow{
			Name: r.name, Type: d.content(answer.get("content")), Description: prose(answer.get("description").text()),
		})
	}
	return shown
}

func (d drawing) schema(named branch) pageSchema {
	s := named.value
	shown := pageSchema{Name: named.name, Description: prose(s.get("description").text())}
	required := map[string]bool{}
	for _, name := range s.get("required").items() {
		required[name.text()] = true
	}
	for _, m := range s.get("properties").members() {
		shown.Members = append(shown.Members, pageRow{
			Name: m.name, Required: required[m.name], Type: d.kind(m.value), Description: prose(m.value.get("description").text()),
		})
	}
	if len(shown.Members) == 0 {
		shown.Type = d.kind(s)
	}
	return shown
}

// content lists the media types of a body with their types.
func (d drawing) content(c node) template.HTML {
	var kinds []string
	for _, media := range c.members() {
		kinds = append(kinds, template.HTMLEscapeString(media.name)+": "+string(d.kind(media.value.get("schema"))))
	}
	return template.HTML(strings.Join(kinds, "<br>")) //nolint:gosec // escaped part by part
}

// kind describes a schema's type in a few words.
func (d drawing) kind(s node) template.HTML {
	esc := template.HTMLEscapeString
	var parts []string
	if ref := s.get("$ref").text(); ref != "" {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		return template.HTML(fmt.Sprintf(`<a href="#schema-%s">%s</a>`, esc(name), esc(name))) //nolint:gosec // escaped
	}
	for _, choice := range append(s.get("oneOf").items(), s.get("anyOf").items()...) {
		parts = append(parts, string(d.kind(choice)))
	}
	for _, value := range s.get("enum").items() {
		parts = append(parts, "<code>"+esc(value.text())+"</code>")
	}
	if c := s.get("const"); c.v != nil {
		parts = append(parts, "<code>"+esc(c.text())+"</code>")
	}
	switch kind := s.get("type").text(); {
	case len(parts) > 0:
	case kind == "array":
		parts = append(parts, "list of "+string(d.kind(s.get("items"))))
	case kind == "object":
		for _, m := range s.get("properties").members() {
			parts = append(parts, "<code>"+esc(m.name)+"</code>: "+string(d.kind(m.value)))
		}
		return template.HTML("{" + strings.Join(parts, ", ") + "}") //nolint:gosec // escaped
	case kind == "":
		parts = append(parts, "anything")
	default:
		if pattern := s.get("pattern").text(); pattern != "" {
			kind += " " + pattern
		}
		parts = append(parts, esc(kind))
	}
	return template.HTML(strings.Join(parts, " or ")) //nolint:gosec // escaped
}

// follow returns the target of a reference, or the node itself.
func (d drawing) follow(n node) node {
	ref := n.get("$ref").text()
	if ref == "" {
		return n
	}
	return d.get(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// node is a part of a document whose members keep their order. A missing part is an empty node.
type node struct{ v any }

type branch struct {
	name  string
	value node
}

func (n node) get(path ...string) node {
	for _, name := range path {
		found := node{}
		for _, m := range n.members() {
			if m.name == name {
				found = m.value
			}
		}
		n = found
	}
	return n
}

func (n node) members() (all []branch) {
	object, _ := n.v.(yaml.MapSlice)
	for _, item := range object {
		all = append(all, branch{fmt.Sprint(item.Key), node{item.Value}})
	}
	return all
}

func (n node) items() (all []node) {
	list, _ := n.v.([]any)
	for _, item := range list {
		all = append(all, node{item})
	}
	return all
}

func (n node) text() string {
	if n.v == nil {
		return ""
	}
	return fmt.Sprint(n.v)
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// prose renders the Markdown that descriptions use: paragraphs, lists, code.
func prose(text string) template.HTML {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if paragraph == "" {
			continue
		}
		escaped := codeSpan.ReplaceAllString(template.HTMLEscapeString(paragraph), "<code>$1</code>")
		if strings.HasPrefix(escaped, "- ") {
			items := strings.Split(strings.TrimPrefix(escaped, "- "), "\n- ")
			out.WriteString("<ul><li>" + strings.Join(items, "</li><li>") + "</li></ul>")
			continue
		}
		out.WriteString("<p>" + escaped + "</p>")
	}
	return template.HTML(out.String()) //nolint:gosec // escaped
}
