package operator

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Configuration is the command "config", which shows and checks the settings.
func (p Program) Configuration() *cobra.Command {
	parent := &cobra.Command{
		Use: "config", Short: "Show, check and describe the configuration",
		Long: "Show and check the configuration that flags, environment and file give, and describe the form of\nthe file. These commands open no store and call no service.",
	}
	parent.AddCommand(p.printConfig(), p.validateConfig(), p.configSchema())
	return parent
}

// settingShown is a setting as it is printed.
type settingShown struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (p Program) printConfig() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "print", Short: "Print each setting's value, and with --origin where it comes from", Args: cobra.NoArgs,
	}
	origin := cmd.Flags().Bool("origin", false, "show where each value comes from; JSON always has it")
	p.Settings(cmd)
	o.Flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		settings, err := p.Shown(cmd)
		if err != nil {
			return err
		}
		shown := []settingShown{}
		for _, s := range settings {
			shown = append(shown, settingShown(s))
		}
		return terminal.Tell(cmd, &o, "", shown, func(to io.Writer, all []settingShown) error { return tellSettings(to, all, *origin) })
	}
	return cmd
}

func tellSettings(to io.Writer, all []settingShown, origin bool) error {
	head := "NAME\tVALUE"
	if origin {
		head += "\tORIGIN"
	}
	var rows [][]string
	for _, s := range all {
		row := []string{s.Name, s.Value}
		if origin {
			row = append(row, s.Origin)
		}
		rows = append(rows, row)
	}
	return terminal.Table(to, head, rows)
}

// validity is the result of "config validate".
type validity struct {
	Valid    bool             `json:"valid"`
	Problems []config.Problem `json:"problems"`
}

func tellValidity(to io.Writer, v validity) error {
	if !v.Valid {
		return nil // the error has the problems
	}
	return terminal.Remark(to, "the configuration is valid")
}

func (p Program) validateConfig() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "validate", Short: "Check the configuration as serve does, and report every problem", Args: cobra.NoArgs,
		Long: "Check the configuration as serve does, and report every problem with its place. Nothing is opened,\n" +
			"so paths, stores and nodes are not tried: doctor does that. The exit status is 2 if there is a problem.",
		Example: "  " + p.Name + " config validate --config " + p.Name + ".yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			problems := config.Problems{}
			err := p.Servable(cmd)
			if err != nil && !errors.As(err, &problems) {
				return err
			}
			return errors.Join(err, terminal.Tell(cmd, &o, "problems", validity{err == nil, problems}, tellValidity))
		},
	}
	p.Settings(cmd)
	o.Report(cmd)
	return cmd
}

func (p Program) configSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration file, for editors and checks", Args: cobra.NoArgs,
		Long: "Print the JSON Schema (draft 2020-12) of the configuration file. An editor with a YAML language\n" +
			"server completes and checks the file by it, if the file begins with\n" +
			"# yaml-language-server: $schema=" + p.Name + ".schema.json",
		Example: "  " + p.Name + " config schema > " + p.Name + ".schema.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", p.Schema())
			return err
		},
	}
}
