package terminal

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// sheet is an output that gets tables as CSV. Remarks for people, which [Remark] writes, are left out.
type sheet struct{ io.Writer }

// page is an output for people.
type page struct {
	io.Writer
	colours bool
}

// Plain removes terminal control characters from text.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// Table prints rows below a header, whose names are separated by tabs. On a terminal the cells below
// STATUS and STATE are coloured by their first word.
func Table(to io.Writer, head string, rows [][]string) error {
	names := strings.Split(head, "\t")
	if out, is := to.(*sheet); is {
		return records(out, names, rows)
	}
	p := paper(to)
	shown := make([][]string, len(rows))
	widths := make([]int, len(names))
	for i, name := range names {
		widths[i] = utf8.RuneCountInString(name)
	}
	for n, row := range rows {
		shown[n] = make([]string, len(row))
		for i, cell := range row {
			shown[n][i] = cmp.Or(Plain(cell), "-")
			widths[i] = max(widths[i], utf8.RuneCountInString(shown[n][i]))
		}
	}
	var text strings.Builder
	line := func(cells []string, colour func(i int, cell string) string) {
		for i, cell := range cells {
			text.WriteString(p.in(colour(i, cell), cell))
			if i < len(cells)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
			}
		}
		text.WriteByte('\n')
	}
	line(names, func(int, string) string { return bold })
	for _, row := range shown {
		line(row, func(i int, cell string) string {
			if i < len(names) && (names[i] == "STATUS" || names[i] == "STATE") {
				return colourOf(cell)
			}
			return ""
		})
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// gap is the number of spaces between columns.
const gap = 2

// records prints a table as CSV. A name is in lower case, with underscores for spaces.
func records(out *sheet, names []string, rows [][]string) error {
	w := csv.NewWriter(out.Writer)
	head := make([]string, len(names))
	for i, name := range names {
		head[i] = strings.ReplaceAll(strings.ToLower(name), " ", "_")
	}
	if err := w.Write(head); err != nil {
		return err
	}
	return w.WriteAll(rows)
}

// Property is one line about a thing.
type Property struct{ Name, Value string }

// Properties prints the properties of one object, each in a line.
func Properties(to io.Writer, all []Property) error {
	if out, is := to.(*sheet); is {
		var rows [][]string
		for _, p := range all {
			rows = append(rows, []string{p.Name, p.Value})
		}
		return records(out, []string{"property", "value"}, rows)
	}
	page := paper(to)
	width := 0
	for _, p := range all {
		width = max(width, utf8.RuneCountInString(p.Name))
	}
	var text strings.Builder
	for _, p := range all {
		value, colour := Plain(p.Value), ""
		if p.Name == "status" {
			colour = colourOf(value)
		}
		fmt.Fprintf(&text, "%s%s%s\n", page.in(bold, p.Name), strings.Repeat(" ", width-utf8.RuneCountInString(p.Name)+gap), page.in(colour, value))
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// Remark prints a line for people.
func Remark(to io.Writer, format string, args ...any) error {
	if _, is := to.(*sheet); is {
		return nil
	}
	_, err := fmt.Fprintf(to, format+"\n", args...)
	return err
}

func paper(to io.Writer) *page {
	if p, is := to.(*page); is {
		return p
	}
	return &page{Writer: to}
}
