package operator

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command called in a wrong way prints its usage.
func TestCalled(t *testing.T) {
	made := func() *cobra.Command {
		root := &cobra.Command{Use: "program", SilenceUsage: true, SilenceErrors: true}
		parent := &cobra.Command{Use: "budgets"}
		list := &cobra.Command{Use: "list CHAIN", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error { return io.EOF }}
		list.Flags().Bool("json", false, "")
		parent.AddCommand(list)
		root.AddCommand(parent)
		Called(root)
		return root
	}
	for args, want := range map[string]string{
		"budgets list":            "accepts 1 arg(s), received 0\nusage: program budgets list CHAIN [flags]\nfor details: program budgets list --help",
		"budgets list 1 2":        "accepts 1 arg(s), received 2\nusage: program budgets list CHAIN [flags]\nfor details: program budgets list --help",
		"budgets list 1 --jsom":   "unknown flag: --jsom\nusage: program budgets list CHAIN [flags]\nfor details: program budgets list --help",
		"budgets list 1 --json=x": "invalid argument \"x\" for \"--json\" flag: strconv.ParseBool: parsing \"x\": invalid syntax\nusage: program budgets list CHAIN [flags]\nfor details: program budgets list --help",
		"budgets list 1 --json":   "EOF", // an error of the command's own work is no misuse
	} {
		root := made()
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
