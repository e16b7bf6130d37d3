package settings_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
)

// A chain has its entry's values, and otherwise the common values from any source. Its own
// values are shown with their line.
func TestOnChain(t *testing.T) {
	file := `
fee: {ceiling: 7000000000, history: 30, premiums: "1,2,3"}
lane: {stall: 40s}
signers: {allowed: "` + alice + `", environment: true, fee-payer: "` + alice + `"}
chains:
  - id: 42431
    endpoints: [http://a]
    fee:
      tokens: "` + bob + `"
      bump: 33
  - id: 56
    endpoints: [http://b]
    fee: {ceiling: 9000000000, headrooms: "0,5,1000", percentiles: "1,2.5,100"}
    lane: {stall: 3m, confirmations: 9, trusted: 9, noop-gas: 21000, look: 2s}
  - id: 1
    endpoints: [http://c]
`
	s, shown, err := resolve(t, file, []string{"WATCHTOWER_FEE_MIN_TIP=6"}, "--fee-bump=15")
	if err != nil {
		t.Fatal(err)
	}
	common := fee.Default()
	common.Ceiling, common.MinTip, common.Bump, common.History = chain.PriceOf(7e9), chain.PriceOf(6), 15, 30
	common.Slow.Premium, common.Normal.Premium, common.Fast.Premium = 1, 2, 3
	tempo, payer := common, address(t, alice)
	tempo.Tokens, tempo.Bump, tempo.Sponsor = []chain.Address{address(t, bob)}, 33, &payer
	other := common
	other.Ceiling = chain.PriceOf(9e9)
	other.Slow, other.Normal, other.Fast = fee.Level{Percentile: 1, Premium: 1}, fee.Level{Percentile: 2.5, Headroom: 5, Premium: 2}, fee.Level{Percentile: 100, Headroom: 1000, Premium: 3}
	for id, want := range map[chain.ID]fee.Policy{42431: tempo, 56: other, 1: common} {
		if diff := cmp.Diff(want, s.On(id).Fee); diff != "" {
			t.Errorf("chain %s: %s", id, diff)
		}
	}
	lane := s.Lane.Settings
	for _, id := range []chain.ID{42431, 1} {
		if diff := cmp.Diff(lane, s.On(id).Lane); diff != "" || lane.Stall != 40*time.Second {
			t.Errorf("chain %s: %s", id, diff)
		}
	}
	lane.Stall, lane.Confirmations, lane.Trusted, lane.NoOpGas, lane.Look = 3*time.Minute, 9, 9, 21_000, 2*time.Second
	if diff := cmp.Diff(lane, s.On(56).Lane); diff != "" {
		t.Error(diff)
	}
	var own []string
	for _, one := range shown {
		if strings.HasPrefix(one.Name, "chains[") {
			own = append(own, one.Name+" "+one.Value+" "+one.Origin)
		}
	}
	want := []string{
		"chains[42431].fee.tokens " + bob + " relayer.yaml:9", "chains[42431].fee.bump 33 relayer.yaml:10",
		"chains[56].fee.ceiling 9000000000 relayer.yaml:13", "chains[56].fee.headrooms 0,5,1000 relayer.yaml:13", "chains[56].fee.percentiles 1,2.5,100 relayer.yaml:13",
		"chains[56].lane.stall 3m relayer.yaml:14", "chains[56].lane.confirmations 9 relayer.yaml:14", "chains[56].lane.trusted 9 relayer.yaml:14",
		"chains[56].lane.noop-gas 21000 relayer.yaml:14", "chains[56].lane.look 2s relayer.yaml:14",
	}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Error(diff)
	}
	// If another source sets the chains, the file's own values do not apply.
	if s, _, err = resolve(t, file, nil, "--chains=56=http://b"); err != nil || s.On(56).Fee.Ceiling != chain.PriceOf(7e9) {
		t.Errorf("%+v, %v", s.On(56), err)
	}
}

// A wrong value in a chain's entry is refused with its line, alone or in combination.
func TestOnChainProblems(t *testing.T) {
	for says, entry := range map[string]string{
		"relayer.yaml:2: chains[0].fee.ceiling: -1 is not within 0 to":                 "fee: {ceiling: -1}",
		"relayer.yaml:2: chains[0].fee.bump: 9 is not within 10 to 1000":               "fee: {bump: 9}",
		"must be a decimal number, without quotes":                                     `fee: {bump: "20"}`,
		"entry 2 is less than the one before":                                          `fee: {headrooms: "1,0,2"}`,
		"must be 3 numbers":                                                            `fee: {percentiles: "1,2"}`,
		"entry 3 is not a number from 0 to 100":                                        `fee: {percentiles: "1,2,NaN"}`,
		"entry 1 is not an address":                                                    `fee: {tokens: x}`,
		"relayer.yaml:2: fee.tokens: chain 56 has no fee tokens":                       `fee: {tokens: "` + alice + `"}`,
		"unknown setting \"ceilling\"; the nearest is ceiling":                         "fee: {ceilling: 1}",
		"unknown setting \"budget\"":                                                   "lane: {budget: 1}",
		"relayer.yaml:2: fee.ceiling: chain 56: the tip's ceiling 6000000 is above":    "fee: {ceiling: 5000000, tip-ceiling: 6000000}",
		"relayer.yaml:2: fee.ceiling: chain 56: percentiles must rise":                 `fee: {percentiles: "5,5,6"}`,
		"relayer.yaml:2: lane.trusted: chain 56: 3 is more than lane.confirmations, 2": "lane: {confirmations: 2, trusted: 3}",
		"is already in line 2":                                                         "fee: {bump: 20, bump: 30}",
	} {
		_, _, err := resolve(t, "chains:\n  - {id: 56, endpoints: [http://a], "+entry+"}\n", nil)
		if problems := (config.Problems{}); !errors.As(err, &problems) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want one that says %q", entry, err, says)
		}
	}
	// The watchtower does not know the setting.
	if _, _, err := config.Resolve(nil, []string{"WATCHTOWER_CONFIG=f"}, func(string) ([]byte, error) {
		return []byte("chains:\n  - {id: 56, endpoints: [http://a], fee: {bump: 20}}\n"), nil
	}); err == nil || !strings.Contains(err.Error(), `unknown setting "fee"`) {
		t.Errorf("the watchtower takes it: %v", err)
	}
}
