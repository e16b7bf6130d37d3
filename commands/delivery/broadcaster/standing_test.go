package broadcaster_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// An attempt reports the account's standing if the account is unable, and otherwise only
// for a row that probes.
func TestStanding(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world, row *tx.Work)
		held    time.Duration // how long the account has been on hold
		want    tx.Standing
		pause   time.Duration
	}{
		"taken": {prepare: func(*world, *tx.Work) {}},
		"no funds": {
			prepare: func(w *world, row *tx.Work) { w.chain.SetBroke(row.Sender, true) },
			want:    tx.Unable, pause: time.Second,
		},
		"no funds, probing for a while": {
			prepare: func(w *world, row *tx.Work) { w.chain.SetBroke(row.Sender, true) },
			held:    12 * time.Second, want: tx.Unable, pause: 3 * time.Second,
		},
		"no funds, probing for days": {
			prepare: func(w *world, row *tx.Work) { w.chain.SetBroke(row.Sender, true) },
			held:    72 * time.Hour, want: tx.Unable, pause: 5 * time.Second,
		},
		"key not authorised": {
			prepare: func(w *world, _ *tx.Work) {
				w.a.Set(refuse("keychain validation failed: access key does not exist"))
				w.b.Set(refuse("keychain validation failed: access key does not exist"))
			},
			want: tx.Unable, pause: time.Second,
		},
		"a pool is full": {prepare: func(w *world, _ *tx.Work) {
			w.a.Set(refuse("txpool is full"))
			w.b.Set(refuse("txpool is full"))
		}},
		"probing, and taken": {prepare: func(*world, *tx.Work) {}, held: time.Second, want: tx.Able},
		"probing, and nobody answers": {
			prepare: func(w *world, _ *tx.Work) {
				w.a.Set(chaintest.Faults{Cut: 1})
				w.b.Set(chaintest.Faults{Cut: 1})
			},
			held: time.Second, want: tx.Unclear,
		},
		"probing, and it has expired": {
			prepare: func(_ *world, row *tx.Work) { row.ExpiresAt = 1 },
			held:    time.Second, want: tx.Unasked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			_, row := w.accept(plain(0))
			c.prepare(w, &row)
			if c.held > 0 {
				row.HeldSince = time.Now().Add(-c.held)
			}
			began := time.Now()
			done := w.attempt(&row)
			if done.Standing != c.want || done.Account != row.Account || done.Account == (tx.Account{}) {
				t.Errorf("%q of %x, want %q of %x", done.Standing, done.Account, c.want, row.Account)
			}
			if pause := done.NextAt.Sub(began); c.pause > 0 && (pause < c.pause || pause > c.pause+time.Second) {
				t.Errorf("probed again in %s, want %s", pause, c.pause)
			}
		})
	}
}
