package cmd

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The most sentences, in a hundred, that may be riddles or vague, in comments and in documents.
const (
	riddlesMax = 1.0
	vagueMax   = 0.5
)

// riddle finds pronouns that stand in the place of a noun.
var riddle = regexp.MustCompile(`(?i)\b(what|whoever|whatever|whomever)\b|(^|[:;,]\s|\b(of|to|for|by|with|from|and|or|says?|knows?|tells?|asks?) )who\b`)

// vague finds pointers that leave out the noun.
var vague = regexp.MustCompile(`(?i)\b(ones? that|those (that|who|of)|that of|such (a )?ones?|so many|some such|as such|a former one|the latter two)\b`)

// retired are words of the project's own for things that have a name in the field, or that the
// glossary names otherwise.
var retired = regexp.MustCompile(`(?i)\b(borne out|bears? out|bearing out|takes? on|taken on|took on|in heaps|made anew|put off|tell of|tells of|told of)\b`)

// measured are the sentences of one kind of text.
type measured struct {
	sentences, riddles, vague, retired int
	found                              []string
}

func (m *measured) add(place, text string) {
	text = codeSpan.ReplaceAllString(text, "X")
	for _, s := range sentences(text) {
		m.sentences++
		switch {
		case riddle.MatchString(s):
			m.riddles++
		case vague.MatchString(s):
			m.vague++
		case retired.MatchString(s):
			m.retired++
		default:
			continue
		}
		m.found = append(m.found, fmt.Sprintf("%s: %.150s", place, s))
	}
}

// check fails the test if more sentences than allowed are riddles or vague, or if one has a
// retired word. It lists them.
func (m *measured) check(t *testing.T, kind string) {
	t.Helper()
	if m.sentences == 0 {
		t.Fatalf("there are no %s", kind)
	}
	in100 := func(n int) float64 { return 100 * float64(n) / float64(m.sentences) }
	t.Logf("%s: %d sentences, %.1f riddles and %.1f vague in a hundred", kind, m.sentences, in100(m.riddles), in100(m.vague))
	if in100(m.riddles) > riddlesMax || in100(m.vague) > vagueMax || m.retired > 0 {
		t.Errorf("%s have a retired word, or more than %v riddles or %v vague sentences in a hundred:\n%s", kind, riddlesMax, vagueMax, strings.Join(m.found, "\n"))
	}
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	ending   = regexp.MustCompile("[.!?:]\\s+[A-Z`\"'(]")
	word     = regexp.MustCompile(`[A-Za-z]+`)
	bullet   = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	remark   = regexp.MustCompile(`^(\s*|.*[;{}),\w]\s+)//\s?(.*)$`)
)

// sentences returns the sentences of at least four words.
func sentences(text string) (all []string) {
	add := func(s string) {
		if s = strings.TrimSpace(s); len(word.FindAllString(s, 4)) == 4 {
			all = append(all, s)
		}
	}
	for {
		end := ending.FindStringIndex(text)
		if end == nil {
			add(text)
			return all
		}
		add(text[:end[0]+1])
		text = text[end[1]-1:]
	}
}

// block collects the lines of one paragraph.
type block struct {
	to    *measured
	file  string
	first int
	lines []string
}

func (b *block) line(n int, text string) {
	if len(b.lines) == 0 {
		b.first = n
	}
	b.lines = append(b.lines, text)
}

func (b *block) end() {
	if len(b.lines) > 0 {
		b.to.add(fmt.Sprintf("%s:%d", b.file, b.first), strings.Join(b.lines, " "))
	}
	b.lines = nil
}

// comments reads the comments of Go source.
func comments(to *measured, file, text string) {
	b := block{to: to, file: file}
	for i, line := range strings.Split(text, "\n") {
		found := remark.FindStringSubmatch(line)
		switch {
		case found == nil:
			b.end()
		case strings.HasPrefix(found[2], "go:") || strings.HasPrefix(found[2], "nolint"):
			b.end()
		case strings.TrimSpace(found[1]) != "": // behind code
			b.end()
			b.line(i+1, found[2])
			b.end()
		default:
			b.line(i+1, found[2])
		}
	}
	b.end()
}

// paragraphs reads the prose of Markdown: paragraphs, lists and cells of tables.
func paragraphs(to *measured, file, text string) {
	b, fenced := block{to: to, file: file}, false
	for i, line := range strings.Split(text, "\n") {
		fence := strings.HasPrefix(line, "```")
		if fence {
			fenced = !fenced
		}
		switch {
		case fenced || fence || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "    ") || strings.TrimSpace(line) == "":
			b.end()
		case strings.HasPrefix(line, "|"):
			b.end()
			for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
				b.line(i+1, strings.TrimSpace(cell))
				b.end()
			}
		default:
			b.line(i+1, bullet.ReplaceAllString(strings.TrimSpace(line), ""))
		}
	}
	b.end()
}

// texts reads the strings in Go source: logs, errors, help.
func texts(to *measured, file, text string) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, 0)
	if err != nil {
		return // go vet tells the reason
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			if words, err := strconv.Unquote(s.Value); err == nil {
				to.add(fmt.Sprintf("%s:%d", file, set.Position(s.Pos()).Line), words)
			}
		}
		return true
	})
}

// Comments, documents and the texts of programs are written in plain words: a sentence names the
// thing that it is about.
func TestPlainWords(t *testing.T) {
	var code, docs, said measured
	for _, file := range files(t) {
		if strings.Contains(file, "/testdata/") {
			continue
		}
		reader, to := comments, &code
		switch path.Ext(file) {
		case ".go":
		case ".md":
			reader, to = paragraphs, &docs
		default:
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		reader(to, file, string(text))
		if path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") {
			texts(&said, file, string(text))
		}
	}
	code.check(t, "comments")
	docs.check(t, "documents")
	said.check(t, "texts of programs")
}

func TestPlainWordsAreMeasured(t *testing.T) {
	for text, want := range map[string]measured{
		"// Rows that are kept come first. What is left goes away.":  {sentences: 2, riddles: 1},
		"x := 1 // the ones that nobody reads any more":              {sentences: 1, vague: 1},
		"// It keeps the caller's key. It tells who asked for that.": {sentences: 2, riddles: 1},
		"// Rows are made anew from the log of events.":              {sentences: 1, retired: 1},
		"// The client who asked is charged for the answer.":         {sentences: 1},
		"//nolint:errcheck // what is left of it is of no interest":  {},
		"s := `a` // two words":                                      {},
	} {
		var got measured
		comments(&got, "a.go", text)
		if got.found = nil; got.sentences != want.sentences || got.riddles != want.riddles || got.vague != want.vague || got.retired != want.retired {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	var got measured
	paragraphs(&got, "a.md", "# What it is\n\nIt keeps `what` you give it.\nThe rest goes away, whatever it is.\n\n| a cell of four words | what is in that cell |\n\n```\nwhat is in code is left out\n```\n")
	if got.sentences != 4 || got.riddles != 2 || got.vague != 0 {
		t.Errorf("%+v", got)
	}
}
