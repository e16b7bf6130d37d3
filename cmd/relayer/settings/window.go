package settings

import (
	"slices"
	"strconv"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
)

// windowSetting is delivery's limit on transactions of one signer and nonce key that are at
// nodes.
const windowSetting = "scheduler.window"

// widen makes delivery's window as wide as a lane's budget, unless the window was set.
// Transactions behind the window wait for the nonce to advance, so with a narrower window a lane
// never reaches its budget.
func (s *Settings) widen(shown []config.Setting) {
	if originOf(windowSetting, shown) != "default" || s.Delivery.Scheduler.Window >= s.Lane.Budget {
		return
	}
	s.Delivery.Scheduler.Window = s.Lane.Budget
	at := slices.IndexFunc(shown, func(one config.Setting) bool { return one.Name == windowSetting })
	shown[at].Value = strconv.Itoa(s.Lane.Budget)
}
