package config

import (
	"fmt"
	"strings"
	"time"
)

// Row declares a setting of a program that is more than the watchtower: it stands in the
// same file, environment and flags, and by the same rules. Its value goes where the
// declaration says when the configuration is resolved.
type Row struct{ *setting }

// DurationRow is a setting whose value is a duration.
func DurationRow(path string, value *time.Duration, standard, low, high time.Duration, doc string) Row {
	return Row{durations(path, value, standard, low, high, doc)}
}

// NumberRow is a setting whose value is a whole number.
func NumberRow[N int | int64](path string, value *N, standard, low, high N, doc string) Row {
	return Row{numbers(path, value, standard, low, high, doc)}
}

// ToggleRow is a setting that is true or false.
func ToggleRow(path string, value *bool, standard bool, doc string) Row {
	return Row{toggles(path, value, standard, doc)}
}

// ChoiceRow is a setting whose value is one of a few words.
func ChoiceRow[C any](path string, value *C, standard, doc string, words []string, meaning []C) Row {
	return Row{choices(path, value, standard, doc, words, meaning)}
}

// AddressRow is a setting whose value is where something listens: host:port.
func AddressRow(path string, value *string, standard, doc string) Row {
	return Row{addresses(path, value, standard, doc)}
}

// Words is what is to be said of a setting whose value is text.
type Words struct {
	Path string // in the file: name, or section.name
	// Standard is the default; Absent says in words what holds without one.
	Standard, Absent string
	Allowed          string // in words, with backquotes around what is typed
	Doc              string // sentences; backquotes mark code
}

// TextRow is a setting whose value is text. The errors of read say what is wrong, and
// show no secret; show gives the value in force.
func TextRow(w Words, read func(text string) error, show func() string) Row {
	return Row{&setting{
		path: w.Path, kind: text, standard: w.Standard, absent: w.Absent, allowed: w.Allowed, doc: w.Doc,
		read: read, show: show,
	}}
}

// PerChain lets a chain's entry in the file's list have a value of its own, at the same
// path within the entry, which [Chain] then has as it stands there. like is the same
// setting, bound to what nobody reads: by its rules the value is judged.
func (r Row) PerChain(like Row) Row {
	r.own = like.read
	return r
}

// Path is where the setting stands in the file.
func (r Row) Path() string { return r.path }

// Read takes a value, as text: the one of a chain, once that of all is known.
func (r Row) Read(text string) error { return r.read(text) }

// Show is the value in force.
func (r Row) Show() string { return r.show() }

// rowsOf are the settings that rows declare.
func rowsOf(more []Row) []*setting {
	all := make([]*setting, len(more))
	for i, row := range more {
		all[i] = row.setting
	}
	return all
}

// Reference is a table of settings in Markdown.
func Reference(rows []Row) string { return reference(rowsOf(rows)) }

func reference(table []*setting) string {
	var out strings.Builder
	out.WriteString("| setting | default | allowed | meaning |\n| --- | --- | --- | --- |\n")
	for _, s := range table {
		standard := s.absent
		if s.standard != "" {
			standard = "`" + s.standard + "`"
		}
		allowed := s.allowed
		if s.kind == number || s.kind == duration {
			low, high, _ := strings.Cut(allowed, " to ")
			allowed = fmt.Sprintf("`%s` to `%s`", low, high)
		}
		doc := s.doc
		if s.own != nil {
			doc += " *Each chain may have its own.*"
		}
		fmt.Fprintf(&out, "| `%s`<br>`%s`<br>`--%s` | %s | %s | %s |\n", s.path, s.env(), s.flag(), standard, allowed, doc)
	}
	return out.String()
}
