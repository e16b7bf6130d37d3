package main_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// An intent has the first nonce of an account new to the chain, and is canceled before an
// attempt. The no-op in its place creates the account, which takes far more gas on Tempo than
// any other transaction. Without that gas the transactions behind it would wait for ever.
func TestHoleAtAnAccountsFirstNonce(t *testing.T) {
	t.Parallel()
	if inEventStoreOnly() {
		testenv.Unsuited(t, "it opens the relayer's own files beside it")
	}
	w := newWorld(t, kinds()[0], inFiles)
	first := w.one(1, "first")
	w.ask(t, first, w.one(1, "behind"))
	s := w.relayer(t, "WATCHTOWER_CRASH_AT=lane.reserved")
	check(t, s.Launch())
	select {
	case <-s.Ended():
	case <-w.ctx.Done():
		t.Fatal("the relayer never reserved a nonce")
	}
	w.cancelInLog(t, first.ID())
	s = w.relayer(t)
	check(t, s.Start(w.ctx))
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	var took struct{ Took time.Duration }
	if !s.Said("stopping", &took) || !s.Said("stopped", &took) || took.Took <= 0 {
		t.Errorf("it has not said that it stopped, or how long that took: %+v", took)
	}
	w.canceled[first.ID()] = true
	w.judge(t)

	stream := lane.Stream(chain.Sequence{Chain: w.id, Sender: wallet.Dev(1).Address()})
	filled := false
	for _, r := range w.events(t) {
		if r.Stream != stream || !strings.HasPrefix(r.Name, "lane.filled.") {
			continue
		}
		var fact struct{ Nonce uint64 }
		check(t, json.Unmarshal(r.Data, &fact))
		filled = filled || fact.Nonce == 0
	}
	if !filled {
		t.Error("no no-op took the first nonce")
	}
}

// cancelInLog cancels an intent while no relayer runs.
func (w *world) cancelInLog(t *testing.T, id chain.IntentID) {
	t.Helper()
	db, err := embedded.Open(filepath.Join(w.dir, "data"), embedded.Options{})
	check(t, err)
	intents := worker.Intents{Store: db.Log(), Codec: intent.Codec(), Random: rand.Reader}
	origin, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	check(t, err)
	_, err = intents.Handle(w.ctx, intent.Stream(id), intent.Cancel{At: time.Now()}, origin)
	check(t, errors.Join(err, db.Close()))
}
