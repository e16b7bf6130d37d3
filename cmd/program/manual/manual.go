// Package manual writes a program's manual from its commands: man pages, and the reference in
// Markdown.
package manual

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Command is the hidden command "manual".
func Command() *cobra.Command {
	parent := &cobra.Command{Use: "manual", Short: "Write the manual of this program", Hidden: true}
	parent.AddCommand(
		&cobra.Command{
			Use: "man FOLDER", Short: "Write a man page for each command into a folder", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return Man(cmd.Root(), args[0], time.Now()) },
		},
		&cobra.Command{
			Use: "markdown", Short: "Print the reference of all commands in Markdown", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return Markdown(cmd.Root(), cmd.OutOrStdout()) },
		},
	)
	return parent
}

// Man writes a man page for each command into a folder, which it creates.
func Man(root *cobra.Command, folder string, at time.Time) error {
	if err := os.MkdirAll(filepath.Clean(folder), 0o755); err != nil { //nolint:gosec // manuals are for everybody
		return err
	}
	root.DisableAutoGenTag = true // pages of one version are the same on every day
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: root.Name(), Manual: "Watchtower", Date: &at}, folder)
}

// Markdown prints the reference of all commands.
func Markdown(root *cobra.Command, to io.Writer) error {
	var text strings.Builder
	name := root.Name()
	fmt.Fprintf(&text, "# Commands of %s\n\n", name)
	fmt.Fprintf(&text, "This page lists every command of `%s` with its flags. It is generated from the commands' own help;\n`%s COMMAND --help` prints the same. [command-line.md](command-line.md) explains the exit statuses,\nand the flags that many commands share: `-o`, `--json`, `--quiet`, `--url`, `--key-file` and `--context`.\n", name, name)
	all := Below(root)
	for _, group := range root.Groups() {
		fmt.Fprintf(&text, "\n## %s\n\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range all {
			if top(cmd).GroupID == group.ID && cmd.HasParent() {
				fmt.Fprintf(&text, "- [`%s`](#%s): %s\n", cmd.CommandPath(), anchor(cmd), plain(cmd.Short))
			}
		}
	}
	for _, cmd := range all {
		section(&text, cmd)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// Below lists the commands that a user sees, each before its subcommands.
func Below(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			all = append(append(all, sub), Below(sub)...)
		}
	}
	return all
}

// top is the command directly below the program to which a command belongs.
func top(cmd *cobra.Command) *cobra.Command {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd
}

func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// plain keeps text from being read as Markdown.
func plain(text string) string {
	return strings.NewReplacer("<", "&lt;", "|", "\\|", "*", "\\*", "_", "\\_").Replace(text)
}

func section(text *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(text, "\n## %s\n\n", cmd.CommandPath())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(text, "%s.\n\n```text\n%s\n```\n", plain(cmd.Short), strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)))
		return
	}
	fmt.Fprintf(text, "%s.\n\n```text\n%s\n", plain(cmd.Short), cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(text, "\nalso: %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.Long != "" && cmd.Long != cmd.Short {
		fmt.Fprintf(text, "\n%s\n", strings.TrimSpace(cmd.Long))
	}
	text.WriteString("```\n")
	if cmd.Example != "" {
		fmt.Fprintf(text, "\n```sh\n%s\n```\n", unindented(cmd.Example))
	}
	flags(text, cmd)
}

// Settings is the annotation of a flag that is a setting of the configuration: the reference leaves
// it out, as the settings have a reference of their own.
const Settings = "setting"

// shared are the flags that the page about the command line explains once.
var shared = []string{"help", "json", "quiet", "key-file", "context", "url"} //nolint:gochecknoglobals // a constant

func flags(text *strings.Builder, cmd *cobra.Command) {
	var rows []string
	settings := false
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if _, is := f.Annotations[Settings]; is {
			settings = true
			return
		}
		if f.Hidden || slices.Contains(shared, f.Name) {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, `--" + f.Name
		}
		if value != "" {
			name += " " + value
		}
		rows = append(rows, fmt.Sprintf("| %s` | %s |\n", name, plain(usage+standard(f))))
	})
	if len(rows) > 0 {
		slices.Sort(rows)
		fmt.Fprintf(text, "\n| flag | meaning |\n| --- | --- |\n%s", strings.Join(rows, ""))
	}
	if settings {
		text.WriteString("\nEvery setting of the configuration is a flag, too.\n")
	}
}

// standard is the default of a flag, in words; empty if the usage or the type tells it.
func standard(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "[]", "0s":
		return ""
	}
	return " (default: " + f.DefValue + ")"
}

func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
