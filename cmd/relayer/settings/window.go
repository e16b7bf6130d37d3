package settings

import (
	"slices"
	"strconv"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
)

// windowSetting is delivery's: how many transactions of one signer and nonce key nodes
// are given at once.
const windowSetting = "scheduler.window"

// widen makes delivery's window as wide as a lane's budget, unless something was said of
// it: what is behind the window waits for the nonce to advance, so a lane with a narrower
// one never has as many transactions on their way as it may.
func (s *Settings) widen(shown []config.Setting) {
	if originOf(windowSetting, shown) != "default" || s.Delivery.Scheduler.Window >= s.Lane.Budget {
		return
	}
	s.Delivery.Scheduler.Window = s.Lane.Budget
	at := slices.IndexFunc(shown, func(one config.Setting) bool { return one.Name == windowSetting })
	shown[at].Value = strconv.Itoa(s.Lane.Budget)
}
