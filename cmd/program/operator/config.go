package operator

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// Configuration is the command "config", which shows the settings in force.
func (p Program) Configuration() *cobra.Command {
	parent := &cobra.Command{Use: "config", Short: "Show the configuration"}
	show := &cobra.Command{
		Use: "print", Short: "Print each setting's value, and with --origin where it comes from", Args: cobra.NoArgs,
	}
	origin := show.Flags().Bool("origin", false, "show where each value comes from")
	p.Settings(show)
	show.RunE = func(cmd *cobra.Command, _ []string) error {
		settings, err := p.Shown(cmd)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		for _, s := range settings {
			line := s.Name + "\t" + s.Value
			if *origin {
				line += "\t" + s.Origin
			}
			fmt.Fprintln(w, line) //nolint:errcheck // Flush tells
		}
		return w.Flush()
	}
	parent.AddCommand(show)
	return parent
}
