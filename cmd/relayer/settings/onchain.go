package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
)

// OnChain is the settings for one chain: the common settings, overridden by the chain's entry in
// the file.
type OnChain struct {
	Fee  fee.Policy
	Lane worker.Settings
}

// differs reports whether a chain may have its own value of a setting: settings that depend on
// its prices or its block time.
func differs(path string) bool {
	return strings.HasPrefix(path, "fee.") ||
		slices.Contains([]string{"lane.look", "lane.stall", "lane.noop-gas", "lane.confirmations", "lane.trusted"}, path)
}

// On returns the settings for a chain.
func (s Settings) On(id chain.ID) OnChain {
	on, known := s.own[id]
	if !known {
		on = OnChain{s.Fee, s.Lane.Settings}
	}
	if s.Formats.Of(id) != Tempo { // other formats have neither tokens nor sponsors
		on.Fee.Tokens = nil
		return on
	}
	on.Fee.Sponsor = s.Signers.FeePayer
	return on
}

// separate builds the settings of chains with their own values, refuses values that are valid
// alone but not together, and appends the values to shown.
func (d draft) separate(shown []config.Setting) (own map[chain.ID]OnChain, all []config.Setting, problems config.Problems) {
	own = map[chain.ID]OnChain{}
	for _, c := range d.Delivery.Chains {
		if len(c.Own) == 0 {
			continue
		}
		one := d // the common settings; the rows of one are bound to it alone
		rows := one.declared()
		for _, o := range c.Own {
			row := rows[slices.IndexFunc(rows, func(r config.Row) bool { return r.Path() == o.Path })]
			if err := row.Read(o.Value); err != nil {
				panic(fmt.Sprintf("settings: %s of chain %s was allowed: %v", o.Path, c.ID, err))
			}
			shown = append(shown, config.Setting{Name: fmt.Sprintf("chains[%s].%s", c.ID, o.Path), Value: row.Show(), Origin: o.Origin})
		}
		s := one.finish()
		own[c.ID] = OnChain{s.Fee, s.Lane.Settings}
		for _, p := range s.together() {
			problems = append(problems, config.Problem{Origin: c.Own[0].Origin, Setting: p.Setting, Text: fmt.Sprintf("chain %s: %s", c.ID, p.Text)})
		}
		if i := slices.IndexFunc(c.Own, func(o config.Own) bool { return o.Path == "fee.tokens" }); i >= 0 && s.Formats.Of(c.ID) != Tempo {
			problems = append(problems, config.Problem{Origin: c.Own[i].Origin, Setting: "fee.tokens", Text: fmt.Sprintf("chain %s has no fee tokens", c.ID)})
		}
	}
	return own, shown, problems
}

// together reports conflicts between settings that may differ between chains, each valid alone.
func (s *Settings) together() (problems config.Problems) {
	refuse := func(path, text string) { problems = append(problems, config.Problem{Setting: path, Text: text}) }
	if s.Lane.Trusted > 0 && s.Lane.Confirmations < s.Lane.Trusted {
		refuse("lane.trusted", fmt.Sprintf("%d is more than lane.confirmations, %d", s.Lane.Trusted, s.Lane.Confirmations))
	}
	if err := s.Fee.Check(); err != nil {
		refuse("fee.ceiling", err.Error())
	}
	if n := len(s.Fee.Tokens); n > feeTokensMax {
		refuse("fee.tokens", fmt.Sprintf("has %d tokens, more than %d", n, feeTokensMax))
	}
	return problems
}
