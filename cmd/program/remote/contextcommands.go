package remote

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Contexts is the command "context".
func Contexts(program string) *cobra.Command {
	parent := &cobra.Command{
		Use: "context", Short: "List, add, choose and remove the services that commands call",
		Long: "List, add, choose and remove contexts. A context names a service: the URLs of its listeners, and\n" +
			"a file with an API key for it. Commands that call a service take --context NAME; without it, they\n" +
			"call the URL of their --url or variable, or else the current context.\n\n" +
			"The contexts are in $XDG_CONFIG_HOME/watchtower/contexts.yaml (~/.config if the variable is not\n" +
			"set), for all programs. The file has no keys, only the names of their files.",
		Example: "  " + program + " context add prod --url https://watchtower.example --key-file ~/.secrets/prod.key\n" +
			"  " + program + " tx list --context prod\n" +
			"  " + program + " context use prod",
	}
	parent.AddCommand(listContexts(), addContext(), useContext(), removeContext())
	return parent
}

func listContexts() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "list", Short: "List the contexts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := readContexts()
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			shown := []shownContext{}
			for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
				shown = append(shown, shownContext{name, name == all.Current, all.Contexts[name]})
			}
			return terminal.Tell(cmd, &o, "", shown, tellContexts)
		},
	}
	o.Flags(cmd)
	return cmd
}

// contextName is the form of a context's name.
var contextName = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9._-]{0,%d}$`, contextNameMost-1))

func addContext() *cobra.Command {
	var c Context
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a context, or change the given members of one", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !contextName.MatchString(args[0]) {
				return terminal.Misuse("%q is not a name: at most %d letters, digits, dots, hyphens and underscores", args[0], contextNameMost)
			}
			all, err := readContexts()
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			changed, err := c.over(cmd, all.Contexts[args[0]])
			if err != nil {
				return err
			}
			all.Contexts[args[0]] = changed
			if all.Current == "" && len(all.Contexts) == 1 {
				all.Current = args[0]
			}
			return all.write()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.URL, string(Delivery), "", "the `URL` of delivery's API")
	flags.StringVar(&c.Relay, string(Relay), "", "the `URL` of a relayer's API of intents")
	flags.StringVar(&c.Admin, string(Internal), "", "the `URL` of the internal listener")
	flags.StringVar(&c.KeyFile, "key-file", "", "a `file` with an API key for these URLs")
	_ = cmd.MarkFlagFilename("key-file") // the flag exists
	cmd.MarkFlagsOneRequired(string(Delivery), string(Relay), string(Internal), "key-file")
	return cmd
}

// over returns an older context with the members that the flags give.
func (c Context) over(cmd *cobra.Command, old Context) (Context, error) {
	for _, m := range []struct {
		flag     Member
		from, to *string
	}{{Delivery, &c.URL, &old.URL}, {Relay, &c.Relay, &old.Relay}, {Internal, &c.Admin, &old.Admin}} {
		if !cmd.Flags().Changed(string(m.flag)) {
			continue
		}
		at, err := url.Parse(*m.from)
		if *m.from != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil) {
			return old, terminal.Misuse("--%s must be a URL that begins with http:// or https://, without a password", m.flag)
		}
		*m.to = *m.from
	}
	if cmd.Flags().Changed("key-file") {
		old.KeyFile = c.KeyFile
		if c.KeyFile != "" {
			absolute, err := filepath.Abs(c.KeyFile)
			if err != nil {
				return old, err
			}
			old.KeyFile = absolute
		}
	}
	return old, nil
}

func useContext() *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one, which commands call by default",
		Args: func(cmd *cobra.Command, args []string) error {
			if none {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		ValidArgsFunction: completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			if all.Current = ""; !none {
				if _, err := all.named(args[0]); err != nil {
					return err
				}
				all.Current = args[0]
			}
			return all.write()
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "have no current context")
	return cmd
}

func removeContext() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a context", Args: cobra.ExactArgs(1), ValidArgsFunction: completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			if _, err := all.named(args[0]); err != nil {
				return err
			}
			if delete(all.Contexts, args[0]); all.Current == args[0] {
				all.Current = ""
			}
			return all.write()
		},
	}
}
