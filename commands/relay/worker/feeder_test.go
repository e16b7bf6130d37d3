package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// feeding is a log of intents, and a queue built from it.
type feeding struct {
	t     *testing.T
	log   port.Store
	db    *embedded.DB // of the queue
	queue Queue
}

func newFeeding(t *testing.T) *feeding {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return &feeding{t, db.Log(), db, db.Intents()}
}

func (f *feeding) feeder() *Feeder {
	return &Feeder{Store: f.log, Queue: f.queue, Checkpoints: f.db.Work(), Codec: intent.Codec(), Log: slog.New(slog.DiscardHandler)}
}

// feed runs a feeder until it has folded the log up to its present head.
func (f *feeding) feed() {
	f.t.Helper()
	head, err := f.log.Head(f.t.Context())
	must(f.t, err)
	at, err := f.db.Work().Checkpoint(f.t.Context(), Reader)
	must(f.t, err)
	if at == head {
		return
	}
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- f.feeder().Run(ctx) }()
	must(f.t, follower.Reached(ctx, head, func(ctx context.Context) (eventlog.Position, error) { return f.db.Work().Checkpoint(ctx, Reader) }))
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		f.t.Fatal(err)
	}
}

// command handles a command; a refusal is ignored.
func (f *feeding) command(id chain.IntentID, c intent.Command) intent.State {
	f.t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	must(f.t, err)
	r, err := Intents{Store: f.log, Codec: intent.Codec(), Random: rand.Reader}.Handle(f.t.Context(), intent.Stream(id), c, o)
	if err != nil && !commands.IsRefusal(err) {
		f.t.Fatal(err)
	}
	return r.State
}

func (f *feeding) state(id chain.IntentID) intent.State {
	f.t.Helper()
	r, err := Intents{Store: f.log, Codec: intent.Codec(), Random: rand.Reader}.Load(f.t.Context(), intent.Stream(id))
	must(f.t, err)
	return r.State
}

// asked returns the position of an intent's first event; 0 if there is none.
func (f *feeding) asked(id chain.IntentID) eventlog.Position {
	f.t.Helper()
	for r, err := range f.log.ReadStream(f.t.Context(), intent.Stream(id), 0) {
		must(f.t, err)
		return r.Position
	}
	return 0
}

var fedSigners = []chain.Address{{19: 1}, {19: 2}}

// fedRequest returns the n-th request: for a signer or a pool, in an ordering group or not.
func fedRequest(n int) intent.Request {
	r := intent.Request{Client: "c", Key: fmt.Sprint(n), From: intent.From{Pool: "hot"}, Chain: 1, Calls: []intent.Call{{To: &chain.Address{9}}}}
	if n%3 == 0 {
		r.From = intent.From{Signer: &fedSigners[n%2]}
	}
	if n%2 == 0 {
		r.Order = fmt.Sprint(n % 4)
	}
	if n%5 == 0 {
		r.NonceKey = intent.NoncePolicy{Mode: intent.NonceProtocol}
	}
	return r
}

func fedBlock(n, fork int) chain.Block {
	return chain.Block{Number: uint64(n), Hash: chain.Keccak(fmt.Append(nil, n, fork)), Time: uint64(n)}
}

// happen draws the next thing that happens to an intent.
func (f *feeding) happen(dice *mathrand.Rand, r intent.Request) {
	s, at := f.state(r.ID()), time.Unix(1000, 0)
	block := fedBlock(1+dice.IntN(3), dice.IntN(2))
	place := intent.Place{Signer: fedSigners[dice.IntN(2)], NonceKey: chain.NonceKey{31: byte(dice.IntN(2))}, Nonce: uint64(s.Assignment)}
	if r.Signer != nil {
		place.Signer = *r.Signer
	}
	var last chain.Hash
	if len(s.Attempts) > 0 {
		last = s.Attempts[len(s.Attempts)-1].Hash
	}
	lost := intent.LoseBlock{Was: block, Now: fedBlock(9, 9), At: at}
	if len(s.Told) > 0 {
		lost.Was = s.Told[0]
	}
	commands := []intent.Command{
		intent.Create{Request: r, At: at},
		intent.Assign{Assignment: s.Assignment + 1, Place: place, Token: 1, At: at},
		intent.Assign{Assignment: s.Assignment + 1, Place: place, Token: 1, At: at},
		intent.Attempt{Assignment: s.Assignment, Kind: intent.First, Hash: chain.Keccak([]byte(r.Key), fmt.Append(nil, dice.Int())), At: at},
		intent.Requeue{Assignment: s.Assignment, Token: s.Token, Evidence: intent.Evidence{Kind: intent.Released}, At: at},
		intent.Requeue{Assignment: s.Assignment, Evidence: intent.Evidence{Kind: intent.Rival, Block: block}, At: at},
		intent.Announce{Hash: last, Receipt: chain.Receipt{Block: block, Status: 1}, Confirmations: []chain.Block{block}, Settled: dice.IntN(2) == 0, At: at},
		intent.Announce{Hash: last, Receipt: chain.Receipt{Block: block, Status: uint64(dice.IntN(2))}, Confirmations: []chain.Block{block}, Settled: true, At: at},
		lost, lost,
		intent.SpeedUp{Fee: intent.NewAmount(uint64(dice.IntN(9))), At: at},
		intent.Cancel{At: at},
	}
	n := len(commands)
	if dice.IntN(4) > 0 {
		n-- // few are canceled, as canceled intents seldom change again
	}
	f.command(r.ID(), commands[dice.IntN(n)])
}

// wanted computes the demand from the intents' own streams.
func (f *feeding) wanted(requests []intent.Request) (all []intent.Demand, came map[intent.Status]int) {
	came = map[intent.Status]int{}
	for _, r := range requests {
		s := f.state(r.ID())
		came[s.Status()]++
		switch w := r.Waiting(f.asked(r.ID())); {
		case s.Requested.ID.IsZero() || s.End != nil:
		case s.Place != nil:
			all = append(all, intent.Demand{From: intent.From{Signer: &s.Place.Signer}, Key: &s.Place.NonceKey, Client: w.Client, First: w.Position, Assigned: 1})
		default:
			all = append(all, intent.Demand{From: w.From, Key: w.Key, Client: w.Client, First: w.Position, Waiting: 1})
		}
	}
	return intent.Sum(all), came
}

func (f *feeding) demand() []intent.Demand {
	f.t.Helper()
	d, err := f.queue.Demand(f.t.Context(), 1)
	must(f.t, err)
	return d
}

// claimFor claims for one of four lanes.
func (f *feeding) claimFor(n, limit int) []intent.Claimed {
	f.t.Helper()
	claimed, err := f.queue.Claim(f.t.Context(), intent.Claim{
		Lane:  chain.Sequence{Chain: 1, Sender: fedSigners[n%2], Key: chain.NonceKey{31: byte(n / 2)}},
		Pools: []string{"hot"}, Holder: fmt.Sprint("holder ", n), TTL: time.Hour, Limit: limit,
	})
	must(f.t, err)
	return claimed
}

// The queue agrees with the streams of the intents at any time. A queue rebuilt from the
// log equals the one kept up to date, except for claims.
func TestFeederRebuild(t *testing.T) {
	ended, brought := 0, 0
	for seed := range uint64(6) {
		dice := mathrand.New(mathrand.NewPCG(seed, 1))
		live, rebuilt := newFeeding(t), newFeeding(t)
		rebuilt.log = live.log
		requests := make([]intent.Request, 24)
		for i := range requests {
			requests[i] = fedRequest(i)
		}
		for range 40 {
			for range 1 + dice.IntN(12) {
				live.happen(dice, requests[dice.IntN(len(requests))])
			}
			live.feed()
			want, _ := live.wanted(requests)
			if diff := cmp.Diff(want, live.demand(), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
			n := dice.IntN(4)
			for _, c := range live.claimFor(n, 3) {
				if dice.IntN(3) > 0 {
					must(t, live.queue.Return(t.Context(), fmt.Sprint("holder ", n), []chain.IntentID{c.ID}))
				}
			}
		}
		var all []chain.IntentID
		for _, r := range requests {
			all = append(all, r.ID())
		}
		for n := range 4 {
			must(t, live.queue.Return(t.Context(), fmt.Sprint("holder ", n), all))
		}
		rebuilt.feed()
		for n := range 8 {
			if diff := cmp.Diff(live.claimFor(n%4, 4), rebuilt.claimFor(n%4, 4)); diff != "" {
				t.Errorf("seed %d: %s", seed, diff)
			}
		}
		_, came := live.wanted(requests)
		ended += came[intent.StatusCompleted] + came[intent.StatusFailed] + came[intent.StatusCanceled]
		for batch, err := range live.log.ReadAll(t.Context(), 0, eventlog.Filter{Names: []string{"intent.reorged."}}, 100) {
			must(t, err)
			brought += len(batch.Events)
		}
	}
	if ended == 0 || brought == 0 {
		t.Errorf("the histories do not reach everything: %d came out, %d came back", ended, brought)
	}
}

// An intent that completed, lost its block in a reorg and then lost its nonce waits again
// at its old position, before later intents.
func TestFeederBringsBack(t *testing.T) {
	f := newFeeding(t)
	early, late := fedRequest(1), fedRequest(5)
	at := time.Unix(1000, 0)
	f.command(early.ID(), intent.Create{Request: early, At: at})
	f.command(late.ID(), intent.Create{Request: late, At: at})
	block := fedBlock(1, 0)
	hash := chain.Hash{1}
	for _, c := range []intent.Command{
		intent.Assign{Assignment: 1, Place: intent.Place{Signer: fedSigners[0]}, Token: 1, At: at},
		intent.Attempt{Assignment: 1, Kind: intent.First, Hash: hash, At: at},
		intent.Announce{Hash: hash, Receipt: chain.Receipt{Block: block, Status: 1}, Confirmations: []chain.Block{block}, Settled: true, At: at},
	} {
		f.command(early.ID(), c)
	}
	f.feed()
	if d := f.demand(); len(d) != 1 || d[0].Assigned != 0 {
		t.Fatalf("one has come out: %+v", d)
	}
	f.command(early.ID(), intent.LoseBlock{Was: block, Now: fedBlock(1, 1), At: at})
	f.feed()
	if claimed := f.claimFor(1, 1); len(claimed) != 1 || claimed[0].ID != late.ID() {
		t.Errorf("it has a nonce, and %+v was claimed", claimed)
	}
	f.command(early.ID(), intent.Requeue{Assignment: 1, Evidence: intent.Evidence{Kind: intent.Rival, Block: fedBlock(2, 1)}, At: at})
	f.feed()
	must(t, f.queue.Return(t.Context(), "holder 1", []chain.IntentID{late.ID()}))
	if claimed := f.claimFor(1, 2); len(claimed) != 2 || claimed[0].ID != early.ID() || claimed[0].Position != 1 {
		t.Errorf("claimed %+v", claimed)
	}
}

// Two feeders never both apply: a feeder that finds the checkpoint moved stops.
func TestFeederStopsWhenAnotherFeeds(t *testing.T) {
	f := newFeeding(t)
	first, second := fedRequest(1), fedRequest(5)
	f.command(first.ID(), intent.Create{Request: first, At: time.Unix(1000, 0)})
	fed := make(chan struct{}, 10)
	feeder := f.feeder()
	feeder.Fed = func([]intent.Waiting, bool) { fed <- struct{}{} }
	ended := make(chan error, 1)
	go func() { ended <- feeder.Run(t.Context()) }()
	<-fed
	must(t, f.db.Work().MoveCheckpoint(t.Context(), Reader, 1, 2)) // another feeder
	f.command(second.ID(), intent.Create{Request: second, At: time.Unix(1000, 0)})
	if err := <-ended; !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("%v, want ErrMoved", err)
	}
	if d := f.demand(); len(d) != 1 || d[0].Waiting != 1 {
		t.Errorf("it changed the queue: %+v", d)
	}
}

// An unreadable event stops the feeder before it, after all earlier events.
func TestFeederStuck(t *testing.T) {
	f := newFeeding(t)
	good := fedRequest(1)
	f.command(good.ID(), intent.Create{Request: good, At: time.Unix(1000, 0)})
	strange := eventlog.Event{ID: eventlog.ID{1}, Name: "intent.requested.v9", Data: []byte("{}")}
	_, err := f.log.Append(t.Context(), intent.Stream(chain.IntentID{1}), 0, strange)
	must(t, err)
	var stuck *eventlog.Stuck
	for range 2 { // it resumes there
		if err := f.feeder().Run(t.Context()); !errors.As(err, &stuck) || stuck.At != 2 {
			t.Fatalf("%v, want it stuck at 2", err)
		}
	}
	if claimed := f.claimFor(0, 9); len(claimed) != 1 {
		t.Errorf("claimed %+v", claimed)
	}
}
