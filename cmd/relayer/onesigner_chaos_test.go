//go:build chaos

package main_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
)

// A thousand concurrent payments of one signer get nonces that rise in log order, without
// duplicates or gaps.
func TestOneSignerAskedAtOnce(t *testing.T) {
	w := newWorld(t, kinds()[0], inPostgres, "--scheduler-window=300", "--lane-budget=300")
	// No process is killed here: leases and claims may be long.
	w.flags = without(w.flags, "--owner-lease", "--lane-claim")
	signer := wallet.Dev(0).Address()
	from := w.wants(t, signer)
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	w.create(t, []client{w.client(t, s)}, w.payments(1000)...)
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	w.judge(t)
	w.unbroken(t, signer, from)
}
