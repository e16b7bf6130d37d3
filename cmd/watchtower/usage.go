package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
)

const settingsHelp = `
Every setting of the service is a flag here too, such as --config, --store and --archive.
"watchtower serve --help" lists them, and docs/configuration.md tells of them.`

// settings gives a command the flags of the configuration. Its help shows the flags that
// are its own, and says where those of the configuration are told: they fill screens.
func settings(cmd *cobra.Command) {
	all := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	config.Flags(all)
	cmd.Flags().AddFlagSet(all)
	usage := new(cobra.Command).UsageFunc()
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		hide := func(hidden bool) { all.VisitAll(func(f *pflag.Flag) { f.Hidden = hidden }) }
		hide(true) // only here: a shell goes on completing them
		defer hide(false)
		if err := usage(cmd); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStderr(), settingsHelp)
		return err
	})
}
