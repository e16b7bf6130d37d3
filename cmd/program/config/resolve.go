package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// configFlag and configEnv name the file; the file cannot name itself.
const (
	configFlag = "config"
	configEnv  = envPrefix + "CONFIG"
)

// Flags adds a flag for each setting, and --config for the file. more are the settings of a
// program that extends the watchtower.
func Flags(flags *pflag.FlagSet, more ...Row) {
	flags.Var(&given{kind: "file"}, configFlag, "the configuration file (YAML), also "+configEnv)
	for _, s := range append(new(draft).table(), rowsOf(more)...) {
		usage := strings.ReplaceAll(s.doc, "`", "") // pflag would show a backquoted word as the value's name
		flags.Var(&given{kind: string(s.kind), standard: s.standard}, s.flag(), usage)
		if s.kind == toggle {
			flags.Lookup(s.flag()).NoOptDefVal = "true"
		}
	}
}

// given stores a flag's text until all settings are checked together. pflag's own errors would
// show the value.
type given struct {
	kind     string
	standard string
	texts    []string
}

func (g *given) Set(text string) error {
	g.texts = append(g.texts, text)
	return nil
}

// ParsedTwice forgets what the first of two parses of the same flags has found: a shell's completion
// makes two.
func ParsedTwice(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if g, ours := f.Value.(*given); ours {
			g.texts = g.texts[len(g.texts)/2:]
		}
	})
}

func (g *given) Type() string { return g.kind }

// String returns the default, which pflag shows in the usage.
func (g *given) String() string { return g.standard }

// resolver collects the given values of each setting.
type resolver struct {
	draft    draft
	table    []*setting
	problems Problems
}

// Resolve builds the configuration from flags declared by [Flags], an environment in the form of
// os.Environ, and the file that either names, read with readFile. The returned settings are in
// the order of the reference, followed by the settings of more. The error is [Problems], without
// secrets.
func Resolve(flags *pflag.FlagSet, environ []string, readFile func(string) ([]byte, error), more ...Row) (Config, []Setting, error) {
	r := &resolver{}
	r.table = append(r.draft.table(), rowsOf(more)...)
	for _, s := range r.table {
		if s.standard != "" {
			if err := s.read(s.standard); err != nil {
				panic(fmt.Sprintf("config: default of %s: %v", s.path, err))
			}
		}
		s.origin = "default"
	}
	environment := r.environment(environ)
	if name, origin := r.fileName(flags, environment); origin != "" {
		r.readFile(name, origin, readFile)
	}
	for _, s := range r.table {
		if value, ok := environment[s.env()]; ok {
			r.take(s, "env "+s.env(), value)
		}
	}
	for _, s := range r.table {
		if value, ok := r.flag(flags, s.flag()); ok {
			r.take(s, "flag --"+s.flag(), value)
		}
	}
	r.derive()
	r.check()
	if len(r.problems) > 0 {
		return Config{}, nil, r.problems
	}
	settings := make([]Setting, len(r.table))
	for i, s := range r.table {
		settings[i] = Setting{s.path, s.show(), s.origin}
	}
	return r.draft.Config, settings, nil
}

// take reads a given value of s.
func (r *resolver) take(s *setting, origin, value string) {
	s.origin = origin
	if value == "" {
		r.refuse(s, origin, "has no value; leave it out to get the default")
		return
	}
	if err := s.read(value); err != nil {
		for line := range strings.Lines(err.Error()) {
			r.refuse(s, origin, strings.TrimSuffix(line, "\n"))
		}
	}
}

func (r *resolver) refuse(s *setting, origin, text string) {
	s.bad = true
	r.problems = append(r.problems, Problem{origin, s.path, text})
}

// flag returns the text given to a flag.
func (r *resolver) flag(flags *pflag.FlagSet, name string) (value string, ok bool) {
	if flags == nil {
		return "", false
	}
	f := flags.Lookup(name)
	if f == nil {
		return "", false
	}
	g, ours := f.Value.(*given)
	if !ours || len(g.texts) == 0 {
		return "", false
	}
	if len(g.texts) > 1 {
		r.problems = append(r.problems, Problem{"flag --" + name, "", "is there twice"})
	}
	return g.texts[len(g.texts)-1], true
}

// fileName returns the path of the file, and the origin of the path; both are empty without a
// file.
func (r *resolver) fileName(flags *pflag.FlagSet, environment map[string]string) (name, origin string) {
	if name, ok := r.flag(flags, configFlag); ok {
		return name, "flag --" + configFlag
	}
	if name, ok := environment[configEnv]; ok {
		return name, "env " + configEnv
	}
	return "", ""
}

// setting returns a row of the table by its path.
func (r *resolver) setting(path string) *setting {
	for _, s := range r.table {
		if s.path == path {
			return s
		}
	}
	panic("config: no setting " + path)
}

// derive sets the values that follow from others.
func (r *resolver) derive() {
	d := &r.draft
	if r.setting("database").origin == "default" {
		d.Database = d.Store
	}
	if r.setting("vault-key-file").origin == "default" {
		switch d.Store.Engine {
		case Embedded:
			d.VaultKeyFile = filepath.Join(d.Store.Dir, "vault.key")
		case Postgres, EventStoreDB:
			d.VaultKeyFile = filepath.Join("watchtower-data", "vault.key")
		}
	}
	if r.setting("audit.key-file").origin == "default" && d.VaultKeyFile != "" {
		d.Audit.KeyFile = filepath.Join(filepath.Dir(d.VaultKeyFile), "audit.key")
	}
	if r.setting("rate.address").origin == "default" && (!IsLoopback(d.Listen) || len(d.Rates.TrustedProxies) > 0) {
		d.Rates.Address.PerSecond = AddressRate
	}
	if r.setting("quota.requests").origin == "default" {
		d.Quotas.Requests = d.Idempotency.MaxRequests / requestsShare
	}
	confirmations := r.setting("confirmations")
	for i := range d.Chains {
		c := &d.Chains[i]
		if c.Confirmations > 0 && confirmations.origin == "default" {
			confirmations.origin = r.setting("chains").origin
		}
		if n, ok := d.confirmations[c.ID]; ok {
			c.Confirmations = n
		}
	}
}
