package broadcaster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/broadcaster"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestTaken(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	began := time.Now()
	done := w.attempt(&row)
	w.reached(raw, 2)
	if got := w.sent(raw); len(got) != 2 || !slices.Contains(got, "a") || !slices.Contains(got, "b") {
		t.Errorf("sent to %v, want a and b", got)
	}
	pause := done.NextAt.Sub(began)
	if done.Attempts != 1 || done.SentAt.Before(began) || done.Note != "taken" || pause < w.Schedule.RebroadcastMin {
		t.Errorf("%+v", done)
	}
	if s := w.state(row); s.Status != tx.StatusBroadcasting || s.Attempt != 1 {
		t.Errorf("%s after attempt %d", s.Status, s.Attempt)
	}
}

// A lost reply is never called a failure: the same bytes are sent again until a node
// confirms that it has them.
func TestLostReplySendsTheSameAgain(t *testing.T) {
	for name, faults := range map[string]chaintest.Faults{
		"taken, reply cut": {Cut: 1},
		"lost before":      {Lose: 1},
		"out of order":     {Fail: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			raw, row := w.accept(plain(0))
			for n := 1; n <= 5; n++ {
				w.a.Set(faults)
				w.b.Set(faults)
				done := w.attempt(&row)
				if s := w.state(row); s.Status != tx.StatusRetry || done.Attempts != n || !s.Handed {
					t.Fatalf("attempt %d: %s, %+v", n, s.Status, done)
				}
				w.a.Set(chaintest.Faults{})
				w.b.Set(chaintest.Faults{})
			}
			w.sent(raw)
			w.attempt(&row)
			if s := w.state(row); s.Status != tx.StatusBroadcasting || s.Refused {
				t.Errorf("%s after the nodes have recovered", s.Status)
			}
		})
	}
}

func refuse(message string) chaintest.Faults {
	return chaintest.Faults{Refuse: func(chain.Signed) *chaintest.Refusal { return &chaintest.Refusal{Code: -32000, Message: message} }}
}

// A refusal is permanent only if every endpoint in rotation was asked and refused for good.
func TestPermanentOnlyWhenEverybodySaysSo(t *testing.T) {
	const never = "intrinsic gas too low"
	for name, c := range map[string]struct {
		a, b chaintest.Faults
		want tx.Status
	}{
		"everybody":        {refuse(never), refuse(never), tx.StatusInvalid},
		"another takes it": {refuse(never), chaintest.Faults{}, tx.StatusBroadcasting},
		"another retries":  {refuse(never), refuse("txpool is full"), tx.StatusRetry},
		"another is cut":   {refuse(never), chaintest.Faults{Cut: 1}, tx.StatusRetry},
		"another is down":  {refuse(never), chaintest.Faults{Down: true}, tx.StatusRetry},
		"both say later":   {refuse("txpool is full"), refuse("already imported somewhere"), tx.StatusRetry},
		"unheard of":       {refuse("computer says no"), refuse("computer says no"), tx.StatusRetry},
	} {
		t.Run(name, func(t *testing.T) {
			for first := range 2 { // either of them may be asked first
				w := newWorld(t, 1)
				w.a.Set(c.a)
				w.b.Set(c.b)
				_, row := w.accept(plain(0))
				row.Attempts = first // the rotation begins at another endpoint
				w.Look = func(context.Context, tx.State, string) (broadcaster.Sight, error) { return broadcaster.Sight{}, nil }
				w.attempt(&row)
				if got := w.state(row).Status; got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			}
		})
	}
}

func TestNothingIsSentThatIsNotWanted(t *testing.T) {
	block := chain.Block{Number: 1, Hash: chain.Keccak([]byte("block")), Time: 1}
	for name, commands := range map[string][]tx.Command{
		"canceled":            {tx.Cancel{At: time.Now()}},
		"canceled and erased": {tx.Cancel{At: time.Now()}, tx.Erase{At: time.Now()}},
		"mined":               {tx.SeeReceipt{Receipt: chain.Receipt{Block: block}, At: time.Now()}},
		"stale":               {tx.SeeNonce{Block: block, Current: 1, At: time.Now()}},
	} {
		for moment, attempts := range map[string]int{"before the first": 0, "before a repeat": 3} {
			t.Run(name+" "+moment, func(t *testing.T) {
				w := newWorld(t, 2)
				raw, row := w.accept(plain(0))
				row.Attempts = attempts // leased
				before := len(w.names(row))
				for _, c := range commands {
					w.command(row, c)
				}
				done := w.attempt(&row)
				if len(w.sent(raw)) != 0 || done.Attempts != attempts || !done.SentAt.IsZero() {
					t.Errorf("sent to %v, %+v", w.sent(raw), done)
				}
				if names := w.names(row); len(names) != before+len(commands) {
					t.Errorf("recorded %v", names)
				}
			})
		}
	}
}

// A transaction that is canceled while the chain is being asked is not sent either.
func TestCanceledDuringTheLook(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	row.Attempts = 1
	look := w.Look
	w.Look = func(ctx context.Context, s tx.State, client string) (broadcaster.Sight, error) {
		sight, err := look(ctx, s, client)
		w.command(row, tx.Cancel{At: time.Now()})
		return sight, err
	}
	if done := w.attempt(&row); len(w.sent(raw)) != 0 || done.Attempts != 1 {
		t.Errorf("sent to %v after it was canceled, %+v", w.sent(raw), done)
	}
}

func TestPayloadGone(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	check(t, w.db.Payloads().Erase(t.Context(), id, []chain.Hash{row.Hash}))
	done := w.attempt(&row)
	if len(w.sent(raw)) != 0 || done.Attempts != 0 || !done.SentAt.IsZero() {
		t.Errorf("sent to %v, %+v", w.sent(raw), done)
	}
	if pause := time.Until(done.NextAt); pause < 30*time.Second {
		t.Errorf("comes back in %v, though only a repair by hand could help", pause)
	}
	if names := w.names(row); len(names) != 1 {
		t.Errorf("recorded %v", names)
	}
}

// overtaken is a payload store that is asked for a payload just after its owner has
// canceled and erased it.
type overtaken struct {
	commands.PayloadRows
	cancel func()
}

func (o overtaken) Get(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error) {
	o.cancel()
	return o.PayloadRows.Get(ctx, id, hash)
}

// A payload that is gone because of a concurrent cancel causes no error log.
func TestCanceledThisVeryMoment(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	var log bytes.Buffer
	w.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.Vault.Rows = overtaken{w.db.Payloads(), func() {
		w.command(row, tx.Cancel{At: time.Now()})
		check(t, w.db.Payloads().Erase(t.Context(), id, []chain.Hash{row.Hash}))
	}}
	if done := w.attempt(&row); len(w.sent(raw)) != 0 || done.Attempts != 0 || done.Note != "no longer wanted" {
		t.Errorf("sent to %v, %+v", w.sent(raw), done)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
}

func TestWindowClosed(t *testing.T) {
	w := newWorld(t, 2)
	signed := plain(0)
	signed.Window.Before = uint64(time.Now().Unix()) + 60
	raw, row := w.accept(signed)
	for _, attempts := range []int{0, 3} {
		row.Attempts = attempts
		w.Now = func() time.Time { return time.Unix(int64(signed.Window.Before), 0) }
		done := w.attempt(&row)
		if len(w.sent(raw)) != 0 || done.Attempts != attempts || !done.SentAt.IsZero() {
			t.Errorf("sent to %v, %+v", w.sent(raw), done)
		}
		if pause := done.NextAt.Sub(w.Now()); pause < w.Schedule.RetryMax/2 {
			t.Errorf("comes back in %v: a block must come first, which wakes it", pause)
		}
	}
	w.Now = func() time.Time { return time.Unix(int64(signed.Window.Before)-1, 0) }
	row.Attempts = 0
	w.attempt(&row) // a second before it closes
	w.reached(raw, 2)
}

// store can be cut off from appends, or lose the answers to them.
type store struct {
	port.Store
	refuse, lose bool
}

func (s *store) Append(ctx context.Context, stream eventlog.Stream, v eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	if s.refuse {
		return eventlog.Appended{}, errors.New("away")
	}
	appended, err := s.Store.Append(ctx, stream, v, events...)
	if err == nil && s.lose {
		err = fmt.Errorf("cut: %w", eventlog.ErrUnknown)
	}
	return appended, err
}

// An attempt whose outcome could not be recorded is repeated with another number, whether
// or not the record was written after all.
func TestStoreFailsAtTheReport(t *testing.T) {
	for name, lost := range map[string]bool{"not recorded": false, "answer lost": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			raw, row := w.accept(plain(0))
			cut := &store{Store: w.db.Log(), refuse: !lost, lose: lost}
			w.Transactions.Store = cut
			done := w.attempt(&row)
			if done.Attempts != 1 || done.SentAt.IsZero() || done.Note != "the attempt could not be recorded" {
				t.Errorf("%+v", done)
			}
			w.reached(raw, 2)
			if pause := time.Until(done.NextAt); pause > w.Schedule.RetryMax {
				t.Errorf("comes back in %v", pause)
			}
			*cut = store{Store: w.db.Log()}
			done = w.attempt(&row)
			s := w.state(row)
			if done.Attempts != 2 || s.Status != tx.StatusBroadcasting || s.Refused {
				t.Errorf("%s, %+v", s.Status, done)
			}
			if recorded := 2 - map[bool]int{true: 1}[lost]; s.Attempt != 2 && s.Attempt != recorded {
				t.Errorf("last recorded attempt %d", s.Attempt)
			}
		})
	}
}

func TestLogNotRead(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := w.Attempt(ctx, row)
	if len(w.sent(raw)) != 0 || done.Attempts != 0 || done.Note != "the log could not be read" {
		t.Errorf("%+v", done)
	}
}

// The queue can be lost: attempt numbers continue from the recorded ones.
func TestNumbersGoOnAfterARebuild(t *testing.T) {
	w := newWorld(t, 1)
	_, row := w.accept(plain(0))
	for range 4 {
		w.attempt(&row)
	}
	if s := w.state(row); s.Attempt != 4 {
		t.Fatalf("last recorded attempt %d", s.Attempt)
	}
	row.Attempts = 0
	if done := w.attempt(&row); done.Attempts != 5 {
		t.Errorf("attempt %d after 4", done.Attempts)
	}
}

// crash ends an attempt as a kill would.
type crash string

// The next regular attempt repairs a crash around the send.
func TestCrashAroundTheSend(t *testing.T) {
	for point, deliveries := range map[string]int{"send.before": 0, "send.after": 2} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t, 2)
			raw, row := w.accept(plain(0))
			w.Crash = func(at string) {
				if at == point {
					panic(crash(at))
				}
			}
			func() {
				defer func() {
					if r := recover(); r != crash(point) {
						t.Fatal(r)
					}
				}()
				w.Attempt(t.Context(), row)
			}()
			w.reached(raw, deliveries)
			if names := w.names(row); len(names) != 1 || len(w.sent(raw)) != deliveries {
				t.Errorf("recorded %v, sent to %v", names, w.sent(raw))
			}
			w.Crash = nil
			w.attempt(&row)
			if names := strings.Join(w.names(row), " "); names != "tx.accepted.v1 tx.broadcast.v1" {
				t.Errorf("recorded %s", names)
			}
		})
	}
}
