package config

import (
	"fmt"
	"strings"
	"time"
)

// Row declares a setting of a program that extends the watchtower. It uses the same file,
// environment and flags, and the same rules. Resolving the configuration stores its value at the
// address given in the declaration.
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

// AddressRow is a setting whose value is a listen address, host:port.
func AddressRow(path string, value *string, standard, doc string) Row {
	return Row{addresses(path, value, standard, doc)}
}

// Words describes a setting whose value is text.
type Words struct {
	Path string // in the file: name, or section.name
	// Standard is the default; Absent describes the behaviour without a value.
	Standard, Absent string
	Allowed          string // in words, with backquotes around literal values
	Doc              string // sentences; backquotes mark code
}

// TextRow is a setting whose value is text. The errors of read describe the problem without
// secrets; show returns the value in force.
func TextRow(w Words, read func(text string) error, show func() string) Row {
	return Row{&setting{
		path: w.Path, kind: text, standard: w.Standard, absent: w.Absent, allowed: w.Allowed, doc: w.Doc,
		read: read, show: show,
	}}
}

// PerChain lets a chain's entry in the file set its own value, at the same path within the
// entry. [Chain] then carries the value as written. like is the same setting bound to an unused
// variable; it validates the chain's value.
func (r Row) PerChain(like Row) Row {
	r.own = like.read
	return r
}

// Path is the setting's path in the file.
func (r Row) Path() string { return r.path }

// Read sets a value from text. It applies a chain's own value after the common value was read.
func (r Row) Read(text string) error { return r.read(text) }

// Show returns the value in force.
func (r Row) Show() string { return r.show() }

// rowsOf returns the settings that rows declare.
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
			doc += " *Each chain may have its own value.*"
		}
		fmt.Fprintf(&out, "| `%s`<br>`%s`<br>`--%s` | %s | %s | %s |\n", s.path, s.env(), s.flag(), standard, allowed, doc)
	}
	return out.String()
}
