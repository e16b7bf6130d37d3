package operator

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/program/manual"
)

const settingsHelp = `
Every setting of the service is a flag here too, such as --config, --store and --archive.
"%s serve --help" lists them, and %s explains them.
`

// AllSettings adds the flags of a program's configuration, by add, to a command whose help shows them.
func AllSettings(cmd *cobra.Command, add func(*pflag.FlagSet)) *pflag.FlagSet {
	all := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	add(all)
	all.VisitAll(func(f *pflag.Flag) { _ = all.SetAnnotation(f.Name, manual.Settings, nil) }) // the flag exists
	cmd.Flags().AddFlagSet(all)
	return all
}

// Settings adds the flags of a program's configuration, by add, to a command. The command's help
// shows only its own flags and refers to page for the configuration: those flags fill screens.
func Settings(cmd *cobra.Command, program, page string, add func(*pflag.FlagSet)) {
	all := AllSettings(cmd, add)
	usage := new(cobra.Command).UsageFunc()
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		hide := func(hidden bool) { all.VisitAll(func(f *pflag.Flag) { f.Hidden = hidden }) }
		hide(true) // only in the help: shell completion still offers them
		defer hide(false)
		if err := usage(cmd); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStderr(), settingsHelp, program, page)
		return err
	})
}
