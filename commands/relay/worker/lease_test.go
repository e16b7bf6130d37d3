package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/redis"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// A Redis that forgets its leases gives a lane to two owners, and both believe they hold
// it. From the second owner's Opened on, the lane accepts nothing from the first.
func TestForgottenLease(t *testing.T) {
	s, err := server.NewRedis(testenv.Need(t, testenv.RedisBinVar))
	must(t, err)
	t.Cleanup(func() { must(t, s.Remove()) })
	must(t, s.Start(t.Context()))
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	lanes := Lanes{Store: db.Log(), Codec: lane.Codec(), Random: rand.Reader}
	id := chain.Sequence{Chain: 1, Sender: chain.Address{1}}
	wish := func(c lane.Command) (lane.State, error) {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "relayer"})
		if err != nil {
			return lane.State{}, err
		}
		r, err := lanes.Handle(t.Context(), lane.Stream(id), c, o)
		return r.State, err
	}
	at := time.Unix(1000, 0)
	learned := lane.Witness{Nonce: 7, Block: fedBlock(1, 0), Final: true, Endpoints: []string{"one"}, Needed: 1, Asked: 1}
	forgotten := make(chan bool)
	// own makes an owner open the lane, wait, and then use it.
	own := func(name string, token lane.Token, use func()) <-chan error {
		opened := make(chan bool)
		leases, err := redis.OpenLeases(s.URL())
		must(t, err)
		owner := lease.Owner{Leases: leases, Holder: name, TTL: time.Hour, Renew: 30 * time.Minute, Log: slog.New(slog.DiscardHandler)}
		ended := make(chan error, 1)
		go func() {
			defer leases.Close() //nolint:errcheck // the test is over
			held, err := false, eventlog.ErrUnknown
			for !held && errors.Is(err, eventlog.ErrUnknown) { // on a busy machine
				held, err = owner.Once(t.Context(), "relayer-"+string(lane.Stream(id)), func(ctx context.Context) error {
					_, err := wish(lane.Open{Holder: name, Token: token, At: at})
					close(opened)
					use()
					return errors.Join(err, ctx.Err()) // ctx did not end: it still believes in its lease
				})
			}
			if err == nil && !held {
				err = errors.New("another holds the lease")
			}
			ended <- err
		}()
		select {
		case <-opened:
		case err := <-ended:
			t.Fatalf("%s: %v", name, err)
		}
		return ended
	}
	var late error
	first := own("first", 1, func() {
		<-forgotten
		_, late = wish(lane.Reserve{Token: 1, Intents: []chain.IntentID{{1}}, Budget: 9, At: at})
	})
	if _, err := wish(lane.Advance{Token: 1, Witness: learned, At: at}); err != nil {
		t.Fatal(err)
	}
	o, err := goredis.ParseURL(s.URL())
	must(t, err)
	client := goredis.NewClient(o)
	must(t, client.FlushAll(t.Context()).Err())
	must(t, client.Close())
	second := own("second", 2, func() { <-forgotten })
	close(forgotten)
	must(t, <-second)
	must(t, <-first)
	if !errors.Is(late, lane.ErrFenced) {
		t.Errorf("the first owner, who was forgotten, reserved: %v", late)
	}
	if state, err := wish(lane.Reserve{Token: 2, Intents: []chain.IntentID{{2}}, Budget: 9, At: at}); err != nil || state.Next != 8 {
		t.Errorf("the second reserved: next %d, %v", state.Next, err)
	}
}
