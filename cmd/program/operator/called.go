package operator

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Called makes a command and its subcommands print their usage after an error in arguments or
// flags.
func Called(root *cobra.Command) {
	root.SetFlagErrorFunc(called)
	for _, below := range root.Commands() {
		Called(below)
	}
	if fits := root.Args; fits != nil {
		root.Args = func(cmd *cobra.Command, args []string) error {
			if err := fits(cmd, args); err != nil {
				return called(cmd, err)
			}
			return nil
		}
	}
}

func called(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nusage: %s\nfor details: %s --help", err, cmd.UseLine(), cmd.CommandPath())
}
