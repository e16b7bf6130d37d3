package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
)

// OnChain is what holds on one chain: what is said for all, and in its place what the
// chain's entry in the file says.
type OnChain struct {
	Fee  fee.Policy
	Lane relayer.Settings
}

// differs reports whether a chain may have a setting of its own: what depends on its
// prices, and on the pace of its blocks.
func differs(path string) bool {
	return strings.HasPrefix(path, "fee.") ||
		slices.Contains([]string{"lane.look", "lane.stall", "lane.noop-gas", "lane.confirmations", "lane.trusted"}, path)
}

// On is what holds on a chain.
func (s Settings) On(id chain.ID) OnChain {
	on, known := s.own[id]
	if !known {
		on = OnChain{s.Fee, s.Lane.Settings}
	}
	if s.Formats.Of(id) != Tempo { // others have neither
		on.Fee.Tokens = nil
		return on
	}
	on.Fee.Sponsor = s.Signers.FeePayer
	return on
}

// separate finds what holds on chains that have settings of their own, refuses what is
// well by itself and not together, and lists the values beside the others.
func (d draft) separate(shown []config.Setting) (own map[chain.ID]OnChain, all []config.Setting, problems config.Problems) {
	own = map[chain.ID]OnChain{}
	for _, c := range d.Delivery.Chains {
		if len(c.Own) == 0 {
			continue
		}
		one := d // what is said for all; the rows of one are bound to it alone
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

// together says what is wrong with what may differ from chain to chain, though each value
// is well by itself.
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
