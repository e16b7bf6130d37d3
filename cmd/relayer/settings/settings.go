// Package settings is the configuration of the relayer: that of the watchtower, which it
// runs, and what carrying intents out takes beside it. All of it stands in one file, with
// the same rules for the environment and for flags.
package settings

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/signer"
)

// Settings are a checked configuration. docs/relayer.md says what each value means.
type Settings struct {
	Delivery config.Config
	Front    Front
	Signers  Signers
	Pools    Pools
	Formats  Formats
	Fee      fee.Policy
	Lane     Lane
	Webhooks Webhooks
	Quotas   Quotas

	own map[chain.ID]OnChain // of chains that have settings of their own
}

// Signers says where the keys are.
type Signers struct {
	Allowed        []chain.Address // who may sign; a key of anybody else is refused
	Keystore       string          // folder of encrypted keys
	PassphraseFile string
	P256           []string // PEM files
	Environment    bool     // keys stand in variables: for development
	Remote         Remote
	FeePayer       *chain.Address // of sponsored intents; nil is nobody
	Failures       int            // in a row disable a signer
}

// Remote says how a remote signer is reached. An empty URL is none.
type Remote struct {
	URL                           string
	Unencrypted                   bool
	Authorities, Certificate, Key string // files
	Timeout                       time.Duration
	Connections                   int
}

// Lane says how lanes are worked on.
type Lane struct {
	relayer.Settings
	Leases Leases
	Linger time.Duration // a lane that was opened on demand is held so long without any
	Extra  int           // lanes on demand that this process holds at once, at most
	Share  int           // percent of them that one client's intents hold, at most
}

// PerClient is how many lanes on demand one client's intents hold at most.
func (l Lane) PerClient() int { return max(l.Extra*l.Share/100, min(l.Extra, 1)) }

// Quotas bound what one client has. All keys of one client are one client.
type Quotas struct {
	Intents  int // that have not come out
	Webhooks int // that are in use
}

// Leases is who says which replica works on a lane.
type Leases string

const (
	ByStore Leases = "store" // the database that has the due queue
	ByRedis Leases = "redis"
)

// Format is how a chain's transactions are written.
type Format string

const (
	Tempo      Format = "tempo"
	DynamicFee Format = "ethereum" // type 2, EIP-1559
	Legacy     Format = "legacy"   // type 0, for chains without base fees
)

// tempoChains are Tempo's own networks, whose transactions are Tempo's if nothing else
// is said: 4217 is the main network, 42431 the test network. Source: docs.tempo.xyz,
// "Connect to the Network".
func tempoChains() []chain.ID { return []chain.ID{4217, 42431} }

// Formats are those of chains that were said.
type Formats map[chain.ID]Format

// Of is how a chain's transactions are written.
func (f Formats) Of(id chain.ID) Format {
	standard := DynamicFee
	if slices.Contains(tempoChains(), id) {
		standard = Tempo
	}
	return cmp.Or(f[id], standard)
}

// Pool is signers that share work.
type Pool struct {
	Name    string
	Signers []chain.Address
}

// Pools are all of them, in the order in which they were given.
type Pools []Pool

// Of are the names of those that a signer belongs to.
func (p Pools) Of(signer chain.Address) (names []string) {
	for _, pool := range p {
		if slices.Contains(pool.Signers, signer) {
			names = append(names, pool.Name)
		}
	}
	return names
}

// Named are the signers of a pool; none when there is no such pool.
func (p Pools) Named(name string) []chain.Address {
	for _, pool := range p {
		if pool.Name == name {
			return pool.Signers
		}
	}
	return nil
}

// Flags adds a flag for each setting, and --config for the file.
func Flags(flags *pflag.FlagSet) { config.Flags(flags, new(draft).rows()...) }

// Resolve makes the configuration, as [config.Resolve] does. The error is
// config.Problems.
func Resolve(flags *pflag.FlagSet, environ []string, readFile func(string) ([]byte, error)) (Settings, []config.Setting, error) {
	d := &draft{Settings: Settings{Fee: fee.Default()}}
	delivery, shown, err := config.Resolve(flags, environ, readFile, d.rows()...)
	if err != nil {
		return Settings{}, nil, err
	}
	d.Delivery = delivery
	own, shown, apart := d.separate(shown)
	s := d.finish()
	s.own = own
	s.Front.derive(delivery, shown)
	s.widen(shown)
	if problems := append(s.check(shown), apart...); len(problems) > 0 {
		return Settings{}, nil, problems
	}
	return s, shown, nil
}

// Reference is a table of the settings that the relay adds, in Markdown.
func Reference() string { return config.Reference(new(draft).rows()) }

// check refuses values that are well by themselves and not together.
func (s *Settings) check(shown []config.Setting) (problems config.Problems) {
	refuse := func(path, format string, args ...any) {
		problems = append(problems, config.Problem{Origin: originOf(path, shown), Setting: path, Text: fmt.Sprintf(format, args...)})
	}
	for path, taken := range map[string]string{"listen": s.Delivery.Listen, "metrics-listen": s.Delivery.MetricsListen} {
		if config.Overlap(s.Front.Listen, taken) {
			refuse("relay.listen", "%s is taken by %s, %s", s.Front.Listen, path, taken)
		}
	}
	if w := s.Delivery.Scheduler.Window; w < s.Lane.Budget {
		refuse(windowSetting, "%d is less than lane.budget, %d: a lane could never have so many in flight", w, s.Lane.Budget)
	}
	if (s.Signers.Keystore == "") != (s.Signers.PassphraseFile == "") {
		refuse("signers.passphrase-file", "goes with signers.keystore: both are needed, or neither")
	}
	if (s.Signers.Remote.Certificate == "") != (s.Signers.Remote.Key == "") {
		refuse("signers.remote-key", "goes with signers.remote-certificate: both are needed, or neither")
	}
	if s.Lane.Leases == ByRedis && s.Delivery.Redis.IsZero() {
		refuse("lane.leases", "needs the setting redis")
	}
	for _, p := range s.together() {
		refuse(p.Setting, "%s", p.Text)
	}
	for _, pool := range s.Pools {
		for _, signer := range pool.Signers {
			if !slices.Contains(s.Signers.Allowed, signer) {
				refuse("pools", "%s of pool %s is not among signers.allowed", signer, pool.Name)
			}
		}
	}
	for _, a := range s.Signers.Allowed {
		if n := len(s.Pools.Of(a)); n > signer.PoolsMax {
			refuse("pools", "%s is in %d pools; a signer is in %d at most", a, n, signer.PoolsMax)
		}
	}
	if p := s.Signers.FeePayer; p != nil && !slices.Contains(s.Signers.Allowed, *p) {
		refuse("signers.fee-payer", "%s is not among signers.allowed", p)
	}
	if err := s.checkWebhooks(); err != nil {
		refuse("webhooks.hosts", "%v", err)
	}
	for id := range s.Formats {
		if !slices.ContainsFunc(s.Delivery.Chains, func(c config.Chain) bool { return c.ID == id }) {
			refuse("lane.formats", "chain %s is not among the chains", id)
		}
	}
	return problems
}

// CheckServe says what serving needs beyond what every command needs: keys.
func (s Settings) CheckServe() error {
	k := s.Signers
	if k.Keystore != "" || len(k.P256) > 0 || k.Environment || k.Remote.URL != "" {
		return nil
	}
	return config.Problems{{
		Origin: "default", Setting: "signers.keystore",
		Text: "no key to sign with: set signers.keystore, signers.p256-files, signers.remote-url, or, for development, signers.environment",
	}}
}
