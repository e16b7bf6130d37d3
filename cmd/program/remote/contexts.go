package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Member is a URL in a context.
type Member string

// The URLs of a context: one for each listener of a service.
const (
	Delivery Member = "url"   // delivery's API
	Relay    Member = "relay" // the API of intents
	Internal Member = "admin" // the internal listener
)

// Context names a service: the URLs of its listeners, and the file with an API key for it.
type Context struct {
	URL     string `yaml:"url,omitempty" json:"url,omitempty"`
	Relay   string `yaml:"relay,omitempty" json:"relay,omitempty"`
	Admin   string `yaml:"admin,omitempty" json:"admin,omitempty"`
	KeyFile string `yaml:"key-file,omitempty" json:"keyFile,omitempty"`
}

func (c Context) of(m Member) string {
	switch m {
	case Relay:
		return c.Relay
	case Internal:
		return c.Admin
	case Delivery:
	}
	return c.URL
}

// contexts is the file with all contexts.
type contexts struct {
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts"`
}

// contextsMost is the largest size of the file in bytes, and contextNameMost of a name.
const (
	contextsMost    = 1 << 20
	contextNameMost = 64
)

// contextsFile is the file with the contexts of a user, by the XDG Base Directory Specification. The
// programs share it.
func contextsFile() (string, error) {
	folder := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(folder) { // the specification says to ignore a relative path
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("contexts: %w; set XDG_CONFIG_HOME", err)
		}
		folder = filepath.Join(home, ".config")
	}
	return filepath.Join(folder, "watchtower", "contexts.yaml"), nil
}

func readContexts() (all contexts, err error) {
	name, err := contextsFile()
	if err != nil {
		return all, err
	}
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return contexts{Contexts: map[string]Context{}}, nil
	case err == nil && len(text) > contextsMost:
		err = fmt.Errorf("it has more than %d bytes", contextsMost)
	case err == nil:
		err = yaml.UnmarshalWithOptions(text, &all, yaml.Strict())
	}
	if all.Contexts == nil {
		all.Contexts = map[string]Context{}
	}
	if err != nil {
		return all, fmt.Errorf("contexts in %s: %w", name, err)
	}
	return all, nil
}

// write replaces the file as a whole: a reader sees the old contexts or the new ones.
func (c contexts) write() error {
	name, err := contextsFile()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(name), "contexts-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err == nil {
		err = os.Rename(draft.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// named returns a context by its name.
func (c contexts) named(name string) (Context, error) {
	found, is := c.Contexts[name]
	if !is {
		return found, terminal.With(terminal.NotFound, fmt.Errorf("there is no context %q; there are: %s", name, cmp.Or(strings.Join(slices.Sorted(maps.Keys(c.Contexts)), ", "), "none")))
	}
	return found, nil
}

// source is the service that a command calls: its URL, and the key file of the context with this URL.
type source struct {
	url, keyFile string
	context      bool
}

// chosen finds the service that flags, environment and contexts name: the flag with the URL, the flag
// --context, the variable with the URL, the current context, the standard, in this order. The key file
// of a context is used with the context's URL only.
func (d *Door) chosen() (source, error) {
	if fixed := cmp.Or(d.url, os.Getenv(d.Variable)); d.context == "" && fixed != "" {
		return source{url: fixed}, nil
	}
	all, err := readContexts()
	if err != nil {
		return source{}, err
	}
	name := cmp.Or(d.context, all.Current)
	if name == "" {
		return source{url: d.Standard}, nil
	}
	c, err := all.named(name)
	if err != nil {
		return source{}, err
	}
	if at := c.of(d.Member); at != "" {
		return source{url: at, keyFile: c.KeyFile, context: true}, nil
	}
	if d.context == "" { // the current context is for other listeners
		return source{url: d.Standard}, nil
	}
	return source{}, fmt.Errorf("the context %s has no URL of %s: add it with context add %s --%s URL", name, d.Name, name, d.Member)
}

func completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(all.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// shownContext is a context as it is listed.
type shownContext struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	Context
}

func tellContexts(to io.Writer, all []shownContext) error {
	var rows [][]string
	for _, c := range all {
		mark := ""
		if c.Current {
			mark = "*"
		}
		rows = append(rows, []string{mark, c.Name, c.URL, c.Relay, c.Admin, c.KeyFile})
	}
	return terminal.Table(to, "CURRENT\tNAME\tURL\tRELAY\tADMIN\tKEY FILE", rows)
}
