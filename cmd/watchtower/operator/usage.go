package operator

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const settingsHelp = `
Every setting of the service is a flag here too, such as --config, --store and --archive.
"%s serve --help" lists them, and %s tells of them.
`

// Settings gives a command the flags of a program's configuration, which add adds and a
// page tells of. Its help shows the flags that are its own, and says where those of the
// configuration are told: they fill screens.
func Settings(cmd *cobra.Command, program, page string, add func(*pflag.FlagSet)) {
	all := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	add(all)
	cmd.Flags().AddFlagSet(all)
	usage := new(cobra.Command).UsageFunc()
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		hide := func(hidden bool) { all.VisitAll(func(f *pflag.Flag) { f.Hidden = hidden }) }
		hide(true) // only here: a shell goes on completing them
		defer hide(false)
		if err := usage(cmd); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStderr(), settingsHelp, program, page)
		return err
	})
}
