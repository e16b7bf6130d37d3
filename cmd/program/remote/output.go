package remote

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/operator"
)

// format is how a command prints its answer.
type format string

const (
	asTable format = "table" // for people
	asJSON  format = "json"  // the service's answer
	asLines format = "jsonl" // each item of a list, or the answer, in a line of JSON
	asCSV   format = "csv"   // the table, as RFC 4180 has it
)

func (f *format) String() string { return string(*f) }
func (*format) Type() string     { return "format" }

// Set is called with the value of the flag.
func (f *format) Set(text string) error {
	all := []format{asTable, asJSON, asLines, asCSV}
	if !slices.Contains(all, format(text)) {
		return fmt.Errorf("%q is not one of table, json, jsonl and csv", text)
	}
	*f = format(text)
	return nil
}

func (f *format) flags(cmd *cobra.Command) {
	*f = asTable
	cmd.Flags().VarP(f, "output", "o", "the `format` of the output: table, json, jsonl or csv")
	cmd.Flags().VarPF((*short)(f), "json", "", "the same as -o json").NoOptDefVal = "true"
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "jsonl", "csv"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// short is the flag --json.
type short format

func (*short) String() string { return "false" }
func (*short) Type() string   { return "bool" }

// Set is called with the value of the flag.
func (s *short) Set(text string) error {
	switch text {
	case "true":
		*s = short(asJSON)
	case "false":
		*s = short(asTable)
	default:
		return fmt.Errorf("%q is not true or false", text)
	}
	return nil
}

// Show prints an answer in the chosen format. list is the member with the items of a list, or empty.
// text prints the answer for people: it uses [Table], [Properties] and [Remark].
func Show[T any](cmd *cobra.Command, d *Door, list string, answer []byte, text func(to io.Writer, answer T) error) error {
	out := cmd.OutOrStdout()
	switch d.format {
	case asJSON:
		_, err := fmt.Fprintf(out, "%s\n", bytes.TrimSpace(answer))
		return err
	case asLines:
		return lines(out, list, answer)
	}
	var told T
	if err := json.Unmarshal(answer, &told); err != nil {
		return fmt.Errorf("the service's response cannot be decoded: %w", err)
	}
	if d.format == asCSV {
		out = &sheet{Writer: out}
	}
	return text(out, told)
}

// lines prints each item of a list, or the answer, in a line.
func lines(to io.Writer, list string, answer []byte) error {
	items := []json.RawMessage{answer}
	whole := bytes.TrimSpace(answer)
	switch {
	case list != "":
		var object map[string]json.RawMessage
		if err := json.Unmarshal(answer, &object); err != nil {
			return fmt.Errorf("the service's response cannot be decoded: %w", err)
		}
		items = nil
		if text := object[list]; len(text) > 0 {
			if err := json.Unmarshal(text, &items); err != nil {
				return fmt.Errorf("the service's response cannot be decoded: %w", err)
			}
		}
	case len(whole) > 0 && whole[0] == '[':
		if err := json.Unmarshal(answer, &items); err != nil {
			return fmt.Errorf("the service's response cannot be decoded: %w", err)
		}
	}
	for _, item := range items {
		var line bytes.Buffer
		if err := json.Compact(&line, item); err != nil {
			return fmt.Errorf("the service's response cannot be decoded: %w", err)
		}
		line.WriteByte('\n')
		if _, err := to.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// sheet is an output that gets tables as CSV. Remarks for people, which [Remark] writes, are left out.
type sheet struct{ io.Writer }

// Table prints rows below a header, whose names are separated by tabs.
func Table(to io.Writer, head string, rows [][]string) error {
	if out, is := to.(*sheet); is {
		w := csv.NewWriter(out.Writer)
		names := strings.Split(strings.ToLower(head), "\t")
		for i, name := range names {
			names[i] = strings.ReplaceAll(name, " ", "_")
		}
		if err := w.Write(names); err != nil {
			return err
		}
		return w.WriteAll(rows)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head) //nolint:errcheck // Flush tells
	for _, row := range rows {
		for i := range row {
			row[i] = cmp.Or(operator.Plain(row[i]), "-")
		}
		fmt.Fprintln(w, strings.Join(row, "\t")) //nolint:errcheck // Flush tells
	}
	return w.Flush()
}

// Property is one line about a thing.
type Property struct{ Name, Value string }

// Properties prints the properties of one object, each in a line.
func Properties(to io.Writer, all []Property) error {
	if out, is := to.(*sheet); is {
		w := csv.NewWriter(out.Writer)
		rows := [][]string{{"property", "value"}}
		for _, p := range all {
			rows = append(rows, []string{p.Name, p.Value})
		}
		return w.WriteAll(rows)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%s\n", p.Name, operator.Plain(p.Value)) //nolint:errcheck // Flush tells
	}
	return w.Flush()
}

// Remark prints a line for people.
func Remark(to io.Writer, format string, args ...any) error {
	if _, is := to.(*sheet); is {
		return nil
	}
	_, err := fmt.Fprintf(to, format+"\n", args...)
	return err
}
