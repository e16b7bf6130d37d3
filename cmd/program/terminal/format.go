package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Format is how a command prints its answer.
type Format string

const (
	AsTable Format = "table" // for people
	AsJSON  Format = "json"  // one JSON value
	AsLines Format = "jsonl" // each item of a list, or the answer, in a line of JSON
	AsCSV   Format = "csv"   // the table, as RFC 4180 has it
)

// Formats are the formats of most commands.
func Formats() []Format { return []Format{AsTable, AsJSON, AsLines, AsCSV} }

// Output holds the format that a command's flags choose.
type Output struct {
	Format  Format
	allowed []Format
}

// Flags adds -o, with all [Formats], and --json to a command. The standard format is a table.
func (o *Output) Flags(cmd *cobra.Command) {
	o.Only(cmd, AsTable, Formats()...)
	cmd.Flags().VarPF((*short)(o), "json", "", "the same as -o json").NoOptDefVal = "true"
}

// Report adds -o and --json to a command whose report is a text, or JSON.
func (o *Output) Report(cmd *cobra.Command) {
	o.Only(cmd, AsTable, AsTable, AsJSON, AsLines)
	cmd.Flags().VarPF((*short)(o), "json", "", "the same as -o json").NoOptDefVal = "true"
}

// Only adds -o with some formats to a command.
func (o *Output) Only(cmd *cobra.Command, standard Format, allowed ...Format) {
	o.Format, o.allowed = standard, allowed
	cmd.Flags().VarP((*named)(o), "output", "o", "the `format` of the output: "+o.words("or"))
	names := make([]string, len(allowed))
	for i, f := range allowed {
		names[i] = string(f)
	}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func (o *Output) words(and string) string {
	var text strings.Builder
	for i, f := range o.allowed {
		switch {
		case i > 0 && i == len(o.allowed)-1:
			text.WriteString(" " + and + " ")
		case i > 0:
			text.WriteString(", ")
		}
		text.WriteString(string(f))
	}
	return text.String()
}

// named is the flag -o.
type named Output

func (n *named) String() string { return string(n.Format) }
func (*named) Type() string     { return "format" }

// Set is called with the value of the flag.
func (n *named) Set(text string) error {
	if !slices.Contains(n.allowed, Format(text)) {
		return fmt.Errorf("%q is not one of %s", text, (*Output)(n).words("and"))
	}
	n.Format = Format(text)
	return nil
}

// short is the flag --json.
type short Output

func (*short) String() string { return "false" }
func (*short) Type() string   { return "bool" }

// Set is called with the value of the flag.
func (s *short) Set(text string) error {
	switch text {
	case "true":
		s.Format = AsJSON
		if !slices.Contains(s.allowed, AsJSON) {
			s.Format = AsLines
		}
	case "false":
		s.Format = AsTable
	default:
		return fmt.Errorf("%q is not true or false", text)
	}
	return nil
}

// Show prints a service's answer in the chosen format. list is the member with the items of a list,
// or empty. text prints the answer for people: it uses [Table], [Properties] and [Remark].
func Show[T any](cmd *cobra.Command, o *Output, list string, answer []byte, text func(to io.Writer, answer T) error) error {
	out := cmd.OutOrStdout()
	switch o.Format {
	case AsJSON:
		_, err := fmt.Fprintf(out, "%s\n", bytes.TrimSpace(answer))
		return err
	case AsLines:
		return lines(out, list, answer)
	}
	var told T
	if err := json.Unmarshal(answer, &told); err != nil {
		return undecodable(err)
	}
	return text(o.writer(cmd), told)
}

// Tell prints a command's own result in the chosen format, as [Show] does.
func Tell[T any](cmd *cobra.Command, o *Output, list string, result T, text func(to io.Writer, result T) error) error {
	switch o.Format {
	case AsJSON:
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(result)
	case AsLines:
		var answer bytes.Buffer
		e := json.NewEncoder(&answer)
		e.SetEscapeHTML(false)
		if err := e.Encode(result); err != nil {
			return err
		}
		return lines(cmd.OutOrStdout(), list, answer.Bytes())
	}
	return text(o.writer(cmd), result)
}

// Writer is standard output for a text in the chosen format: [Table], [Properties] and [Remark]
// print to it as the format has it.
func (o *Output) writer(cmd *cobra.Command) io.Writer {
	if o.Format == AsCSV {
		return &sheet{Writer: cmd.OutOrStdout()}
	}
	return &page{Writer: cmd.OutOrStdout(), colours: Colours(cmd)}
}

func undecodable(err error) error {
	return fmt.Errorf("the service's response cannot be decoded: %w", err)
}

// IsSheet reports whether an output gets CSV.
func IsSheet(to io.Writer) bool {
	_, is := to.(*sheet)
	return is
}

// lines prints each item of a list, or the answer, in a line.
func lines(to io.Writer, list string, answer []byte) error {
	items := []json.RawMessage{answer}
	whole := bytes.TrimSpace(answer)
	switch {
	case list != "":
		var object map[string]json.RawMessage
		if err := json.Unmarshal(answer, &object); err != nil {
			return undecodable(err)
		}
		items = nil
		if text := object[list]; len(text) > 0 {
			if err := json.Unmarshal(text, &items); err != nil {
				return undecodable(err)
			}
		}
	case len(whole) > 0 && whole[0] == '[':
		if err := json.Unmarshal(answer, &items); err != nil {
			return undecodable(err)
		}
	}
	for _, item := range items {
		var line bytes.Buffer
		if err := json.Compact(&line, item); err != nil {
			return undecodable(err)
		}
		line.WriteByte('\n')
		if _, err := to.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
