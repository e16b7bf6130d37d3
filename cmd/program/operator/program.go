package operator

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/manual"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// The groups of a program's commands in its help.
const (
	Clients   = "Commands for clients, which call a running service:"
	Operators = "Commands for operators, which call a running service:"
	Service   = "Running and monitoring a service:"
	Store     = "Commands on the store, for operators:"
)

// Group adds commands to a program, under a title.
func Group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
		root.AddCommand(cmd)
	}
}

// Finish completes a program whose commands have been added.
func Finish(root *cobra.Command) {
	root.AddCommand(manual.Command())
	for _, cmd := range root.Commands() {
		if cmd.Name() == "version" {
			root.Version = cmd.Version
		}
	}
	root.SetVersionTemplate("{{.Version}}\n")
	terminal.Prepare(root)
}

// versionShown is the version of a program.
type versionShown struct {
	Program        string `json:"program"`
	Version        string `json:"version"`
	GitSHA         string `json:"gitSha,omitempty"`
	BuildTimestamp string `json:"buildTimestamp,omitempty"`
}

func (v versionShown) String() string {
	return strings.Join(strings.Fields(strings.Join([]string{v.Program, v.Version, v.GitSHA, v.BuildTimestamp}, " ")), " ")
}

// Version is the command "version". Its parent also gets the flag --version.
func (p Program) Version(b app.Build) *cobra.Command {
	var o terminal.Output
	shown := versionShown{p.Name, b.Version, b.GitSHA, b.Timestamp}
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return terminal.Tell(cmd, &o, "", shown, func(to io.Writer, v versionShown) error { return terminal.Remark(to, "%s", v) })
		},
	}
	o.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsJSON)
	cmd.Version = shown.String()
	return cmd
}
