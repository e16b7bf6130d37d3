package app

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	relayapi "github.com/tempo-watchtower/watchtower/api/relay"
	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// unanswered is a read model that does not answer. It counts the statements that ask it.
type unanswered struct{ asked int }

func (u *unanswered) Connect(context.Context) (driver.Conn, error) {
	u.asked++
	return nil, errors.New("the read model was asked")
}

func (u *unanswered) Driver() driver.Driver { return nil }

// The intent ahead of another in its ordering group is found in the queue. The client's other
// waiting intents, however many, are not searched for it in the read model, whose connections
// all clients share.
func TestAheadIsFoundWithoutTheReadModel(t *testing.T) {
	const others = 2000
	alice := wallet.Dev(0).Address()
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	view := &unanswered{}
	r := &relay{queue: db.Intents(), in: &delivery.App{Ports: delivery.Ports{Storage: delivery.Storage{View: sql.OpenDB(view)}}}}
	defer func() { must(t, r.in.Ports.Storage.View.Close()) }()
	grouped := func(key string) intent.Request {
		return intent.Request{Client: "ann", Key: key, Chain: onTempo, From: intent.From{Pool: "hot"}, Order: "row"}
	}
	asked := []intent.Request{grouped("first")}
	for range others {
		asked = append(asked, intent.Request{Client: "ann", Key: "other", Chain: onTempo, From: intent.From{Signer: &alice}})
	}
	asked = append(asked, grouped("second"))
	var changes []intent.Change
	for n, one := range asked {
		w := one.Waiting(eventlog.Position(n + 1))
		if one.Order == "" {
			w.ID = chain.IntentID{0xff, byte(n >> 8), byte(n)}
		}
		changes = append(changes, intent.Change{ID: w.ID, Open: &w})
	}
	must(t, db.Intents().Apply(t.Context(), "test", 0, 1, changes))
	rowOf := func(n int) intents.Row {
		one := asked[n]
		return intents.Row{State: intent.State{Requested: intent.Requested{ID: one.ID(), Request: one}}, Position: eventlog.Position(n + 1)}
	}
	hold, err := r.behind(t.Context(), rowOf(len(asked)-1))
	if err != nil || hold == nil || !errors.Is(hold.Why, relayapi.ErrBehind) || !strings.Contains(hold.Why.Error(), asked[0].ID().String()) {
		t.Errorf("the second intent waits for %+v, %v", hold, err)
	}
	for _, n := range []int{0, 1} { // the first of its group, and one in no group
		if hold, err := r.behind(t.Context(), rowOf(n)); err != nil || hold != nil {
			t.Errorf("intent %d waits for %+v, %v", n, hold, err)
		}
	}
	if view.asked != 0 {
		t.Errorf("%d statements of the read model", view.asked)
	}
}
