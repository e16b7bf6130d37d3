// Package settings is the configuration of the relayer: the watchtower's configuration, plus
// settings for carrying out intents. All are in one file, with the same rules for environment
// and flags.
package settings

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// Settings are a checked configuration. docs/reference/relayer.md describes each value.
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

	own map[chain.ID]OnChain // of chains with their own settings
}

// Signers configures the sources of keys.
type Signers struct {
	Allowed        []chain.Address // permitted signers; any other key is refused
	Keystore       string          // directory of encrypted keys
	PassphraseFile string
	P256           []string // PEM files
	Environment    bool     // keys are in environment variables: for development
	Remote         Remote
	FeePayer       *chain.Address // of sponsored intents; nil: none
	Failures       int            // consecutive failures that disable a signer
}

// Remote configures the connection to a remote signer. An empty URL means none.
type Remote struct {
	URL                           string
	Unencrypted                   bool
	Authorities, Certificate, Key string // files
	Timeout                       time.Duration
	Connections                   int
}

// Lane configures the work on lanes.
type Lane struct {
	worker.Settings
	Leases Leases
	Linger time.Duration // time for which a lane opened on demand is held without demand
	Extra  int           // maximum number of lanes on demand in this process
	Share  int           // maximum percentage of these for one client's intents
}

// PerClient is the maximum number of lanes on demand for one client's intents.
func (l Lane) PerClient() int { return max(l.Extra*l.Share/100, min(l.Extra, 1)) }

// Quotas limit one client. All keys of one client count together.
type Quotas struct {
	Intents    int // unfinished intents
	Webhooks   int // webhooks in use
	Deliveries int // queued webhook deliveries
}

// Leases is the store that keeps the leases of lanes.
type Leases string

const (
	ByStore Leases = "store" // the database of the due queue
	ByRedis Leases = "redis"
)

// Format is the transaction format of a chain.
type Format string

const (
	Tempo      Format = "tempo"
	DynamicFee Format = "ethereum" // type 2, EIP-1559
	Legacy     Format = "legacy"   // type 0, for chains without base fees
)

// tempoChains are Tempo's own networks, whose format defaults to Tempo: 4217 is the main
// network, 42431 the test network. Source: docs.tempo.xyz, "Connect to the Network".
func tempoChains() []chain.ID { return []chain.ID{4217, 42431} }

// Formats are the configured formats of chains.
type Formats map[chain.ID]Format

// Of returns the transaction format of a chain.
func (f Formats) Of(id chain.ID) Format {
	standard := DynamicFee
	if slices.Contains(tempoChains(), id) {
		standard = Tempo
	}
	return cmp.Or(f[id], standard)
}

// Pool is a group of signers that share work.
type Pool struct {
	Name    string
	Signers []chain.Address
}

// Pools are all pools, in configured order.
type Pools []Pool

// Of returns the names of the pools of a signer.
func (p Pools) Of(signer chain.Address) (names []string) {
	for _, pool := range p {
		if slices.Contains(pool.Signers, signer) {
			names = append(names, pool.Name)
		}
	}
	return names
}

// Named returns the signers of a pool; none if the pool does not exist.
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

// Schema is the JSON Schema of the configuration file.
func Schema() []byte { return config.Schema("relayer", new(draft).rows()...) }

// Resolve builds the configuration, like [config.Resolve]. The error is config.Problems.
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

// check refuses values that are valid alone but not together.
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
		refuse(windowSetting, "%d is less than lane.budget, %d; raise it, or lower lane.budget", w, s.Lane.Budget)
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

// CheckServe refuses a configuration that serving cannot use: it needs keys.
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
