package worker

import (
	"bytes"
	"crypto/rand"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// The process dies after recording attempts and before handing them over, and the vault
// loses the bytes of some. Their nonces are signed again, all at once and not one stall
// after the other. Later attempts are handed over meanwhile.
func TestLostBytes(t *testing.T) {
	w := newWorld(t)
	ids := w.ask(w.request(1), w.request(2), w.request(3), w.request(4))
	l, ln := w.live(0, false)
	l.point = "intents.told"
	if !w.doomed(l, ln, func() bool { return false }) {
		t.Fatal("it has outlived")
	}
	lost := w.attempted()[:2]
	must(t, w.db.Payloads().Erase(t.Context(), moderato, lost[:1]))
	w.reseal(lost[1])

	a, began := w.worker(), w.clock.now()
	for done := w.ended(intent.StatusCompleted, ids...); !done(); w.block() {
		_ = w.turns(a, 1) // it returns the error about lost bytes
		if w.clock.now().Sub(began) >= w.settings.Stall {
			t.Fatal("they are not carried out before they stall")
		}
	}
	w.judge()
	want := map[chain.IntentID]int{ids[0]: 2, ids[1]: 2, ids[2]: 1, ids[3]: 1}
	for id, n := range want {
		if got := len(w.intent(id).Attempts); got != n {
			t.Errorf("%s has %d attempts, not %d", id, got, n)
		}
	}
}

// Bytes of attempts are wanted from recording until their nonce is closed; other bytes are
// not.
func TestWantedBytes(t *testing.T) {
	w := newWorld(t)
	ids := w.ask(w.request(1), w.request(2))
	l, ln := w.live(0, false)
	l.point = "lane.attempted"
	w.doomed(l, ln, func() bool { return false })
	all := w.attempted()
	wanted := func() (n int) {
		of := Attempts{Lanes: ln.Lanes, Vault: ln.Vault, Decode: tempo.Decode}
		for _, hash := range append(all, chain.Hash{1}) {
			is, err := of.Wanted(t.Context(), payload.Ref{Chain: moderato, Hash: hash})
			must(t, err)
			if is {
				n++
			}
		}
		return n
	}
	stray := w.rival(70)
	ref := payload.Ref{Chain: moderato, Hash: chain.Keccak(stray)}
	all = append(all, ref.Hash)
	vault := ln.Vault
	vault.Rows = w.db.Payloads()
	must(t, vault.Keep(t.Context(), []commands.Payload{{Ref: ref, Raw: stray}}))
	if n := wanted(); n != 2 {
		t.Errorf("%d are wanted while nobody has them, not 2", n)
	}
	w.until(w.worker(), "they are done", w.ended(intent.StatusCompleted, ids...))
	if n := wanted(); n != 0 {
		t.Errorf("%d are wanted when all is done", n)
	}
}

// reseal stores a transaction's bytes under another master key, as if the operator had
// changed the key since.
func (w *world) reseal(hash chain.Hash) {
	w.t.Helper()
	raw := w.bytesOf(hash)
	other, err := payload.NewMaster(bytes.Repeat([]byte{7}, payload.KeyBytes))
	must(w.t, err)
	must(w.t, w.db.Payloads().Erase(w.t.Context(), moderato, []chain.Hash{hash}))
	vault := commands.Vault{Rows: w.db.Payloads(), Master: other, Random: rand.Reader}
	must(w.t, vault.Keep(w.t.Context(), []commands.Payload{{Ref: payload.Ref{Chain: moderato, Hash: hash}, Raw: raw}}))
}
