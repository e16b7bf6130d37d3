package settings_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
)

var update = flag.Bool("update", false, "write docs/reference/relayer.md")

const (
	page     = "../../../docs/reference/relayer.md"
	preamble = "testdata/preamble.md" // the handwritten part
	alice    = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
	bob      = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
	secret   = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
)

func resolve(t *testing.T, file string, env []string, args ...string) (settings.Settings, []config.Setting, error) {
	t.Helper()
	flags := pflag.NewFlagSet("relayer", pflag.ContinueOnError)
	settings.Flags(flags)
	if file != "" {
		args = append(args, "--config=relayer.yaml")
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return settings.Resolve(flags, env, func(string) ([]byte, error) { return []byte(file), nil })
}

func address(t *testing.T, text string) chain.Address {
	t.Helper()
	a, err := chain.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestDefaults(t *testing.T) {
	s, _, err := resolve(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := fee.Default()
	if diff := cmp.Diff(want, s.Fee); diff != "" {
		t.Errorf("the fees differ from the standard ones:\n%s", diff)
	}
	if s.Lane.Budget != 100 || s.Lane.NoOpGas != 100_000 || s.Lane.Leases != settings.ByStore || s.Lane.Claim != 10*time.Second {
		t.Errorf("lanes: %+v", s.Lane)
	}
	if s.Formats.Of(42431) != settings.Tempo || s.Formats.Of(1) != settings.DynamicFee {
		t.Errorf("formats: %s, %s", s.Formats.Of(42431), s.Formats.Of(1))
	}
	if err := s.CheckServe(); err == nil {
		t.Error("it serves without a key")
	}
}

// The file, the environment and flags set the same settings, and the last one wins.
func TestPlaces(t *testing.T) {
	file := `
chains: 42431=http://a;56=http://b
signers: {allowed: "` + alice + "," + bob + `", environment: true, fee-payer: "` + bob + `"}
pools: "hot=` + alice + "," + bob + ";cold=" + bob + `"
lane: {budget: 7, formats: 56=legacy, trusted: 2, confirmations: 3}
fee: {ceiling: 1000000000, min-tip: 5}
`
	s, shown, err := resolve(t, file, []string{"WATCHTOWER_LANE_BUDGET=8", "WATCHTOWER_FEE_MIN_TIP=6"}, "--fee-min-tip=9", "--lane-stall=1m")
	if err != nil {
		t.Fatal(err)
	}
	if s.Lane.Budget != 8 || s.Lane.Stall != time.Minute || s.Lane.Trusted != 2 {
		t.Errorf("lane: %+v", s.Lane)
	}
	if s.Fee.Ceiling != chain.PriceOf(1e9) || s.Fee.MinTip != chain.PriceOf(9) {
		t.Errorf("fees: %+v", s.Fee)
	}
	if s.Formats.Of(56) != settings.Legacy || len(s.Delivery.Chains) != 2 {
		t.Errorf("formats %v of %v", s.Formats, s.Delivery.Chains)
	}
	if diff := cmp.Diff([]string{"hot", "cold"}, s.Pools.Of(address(t, bob))); diff != "" {
		t.Error(diff)
	}
	if s.Signers.FeePayer == nil || *s.Signers.FeePayer != address(t, bob) || s.CheckServe() != nil {
		t.Errorf("signers: %+v", s.Signers)
	}
	for _, one := range shown {
		if one.Name == "lane.budget" && (one.Value != "8" || one.Origin != "env WATCHTOWER_LANE_BUDGET") {
			t.Errorf("%+v", one)
		}
	}
}

// Wrong values, alone or in combination, are reported with their place. A secret in the wrong
// place is not shown.
func TestProblems(t *testing.T) {
	allowed := "--signers-allowed=" + alice
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no address":              {[]string{"--signers-allowed=" + secret}, "signers.allowed: entry 1 is not an address"},
		"an address twice":        {[]string{"--signers-allowed=" + alice + "," + alice}, "is there twice"},
		"a pool of a stranger":    {[]string{allowed, "--pools=hot=" + bob}, "is not among signers.allowed"},
		"a pool twice":            {[]string{allowed, "--pools=hot=" + alice + ";hot=" + alice}, "pool hot is there twice"},
		"a pool without a name":   {[]string{allowed, "--pools==" + alice}, "a pool's name"},
		"a pool of nobody":        {[]string{allowed, "--pools=hot="}, "entry 1 is not an address"},
		"a payer who is unknown":  {[]string{allowed, "--signers-fee-payer=" + bob}, "is not among signers.allowed"},
		"a key as a path":         {[]string{"--signers-keystore=" + secret, "--signers-passphrase-file=p"}, "is a key"},
		"a keystore alone":        {[]string{"--signers-keystore=k"}, "signers.passphrase-file"},
		"a password in a URL":     {[]string{"--signers-remote-url=https://u:" + secret + "@host"}, "without user, query and fragment"},
		"a certificate alone":     {[]string{"--signers-remote-certificate=c"}, "signers.remote-key"},
		"redis that is not there": {[]string{"--lane-leases=redis"}, "needs the setting redis"},
		"trust before it is told": {[]string{"--lane-trusted=3"}, "more than lane.confirmations"},
		"a format of no chain":    {[]string{"--lane-formats=5=legacy"}, "chain 5 is not among the chains"},
		"a format that is none":   {[]string{"--chains=5=http://a", "--lane-formats=5=near"}, "tempo, ethereum or legacy"},
		"a tip above the ceiling": {[]string{"--fee-ceiling=1000000000", "--fee-tip-ceiling=1000000001"}, "above the fee's"},
		"a bump no pool takes":    {[]string{"--fee-bump=9"}, "not within 10 to 1000"},
		"the API's address":       {[]string{"--relay-listen=:8420"}, "is taken by listen, 127.0.0.1:8420"},
		"the metrics' address":    {[]string{"--relay-listen=127.0.0.1:8421"}, "is taken by metrics-listen"},
		"a key as a file":         {[]string{"--webhooks-secrets-file=" + secret}, "is a key"},
		"a host that is none":     {[]string{"--webhooks-hosts=a b"}, "neither a name nor an address"},
		"a port that is none":     {[]string{"--webhooks-ports=443,0"}, "entry 2 is not a port"},
		"a network that is none":  {[]string{"--webhooks-networks=10.0.0.1/8"}, "bits behind its prefix"},
		"a network of nothing":    {[]string{"--webhooks-networks=" + secret}, "is not a network"},
		"a setting that is none":  {[]string{"--lane-budget=x"}, "not a decimal number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := resolve(t, "", nil, c.args...)
			problems := config.Problems{}
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want one that says %q", err, c.says)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("a secret is shown: %v", err)
			}
			if !strings.HasPrefix(problems[0].Origin, "flag --") && problems[0].Origin != "default" {
				t.Errorf("it is said to stand in %q", problems[0].Origin)
			}
		})
	}
}

// The watchtower refuses a configuration file with settings of the relayer.
func TestWatchtowerKnowsNoneOfThem(t *testing.T) {
	flags := pflag.NewFlagSet("watchtower", pflag.ContinueOnError)
	config.Flags(flags)
	if flags.Lookup("signers-keystore") != nil {
		t.Error("the watchtower has a flag for keys")
	}
	_, _, err := config.Resolve(nil, []string{"WATCHTOWER_SIGNERS_KEYSTORE=k"}, nil)
	if err == nil || !strings.Contains(err.Error(), "is not a setting") {
		t.Errorf("the watchtower takes a keystore: %v", err)
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	written, err := os.ReadFile(preamble)
	if err != nil {
		t.Fatal(err)
	}
	want := string(written) + settings.Reference()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference/relayer.md is not what the table says; run go test ./cmd/relayer/settings -update\n%s", diff)
	}
	for i, rest := range strings.Split(string(written), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		s, _, err := resolve(t, block, nil)
		if err != nil {
			t.Errorf("block %d: %v", i+1, err)
		} else if err := errors.Join(s.CheckServe(), s.Delivery.CheckServe()); err != nil {
			t.Errorf("block %d: %v", i+1, err)
		}
	}
}
