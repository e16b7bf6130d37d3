package broadcaster_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/broadcaster"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// named records the client of each call, and refuses all bytes: the account has no funds.
type named struct {
	broadcaster.Nodes
	clients []string
	lane    bool // the last one was of a lane
}

func (n *named) Send(_ context.Context, _ []byte, _ chain.Hash, _ int, of tx.Sending) []tx.Answer {
	n.clients, n.lane = append(n.clients, of.Client), of.Lane
	return []tx.Answer{{Class: tx.Retry, Cause: tx.Funds, Endpoint: "a"}}
}

// Calls to nodes and probes are the client's whose intent it is, though the row of a transaction that
// the relay has signed has the relay's turn. Such a transaction is sent as one of a lane.
func TestNodesAreCalledForTheIntentsClient(t *testing.T) {
	for _, c := range []struct{ client, row, want string }{
		{"alice", "", "alice"}, {"alice", "alice", "alice"}, {"", "key", "key"}, {"", "", ""},
	} {
		w := newWorld(t, 1)
		_, row := w.acceptFrom(c.client, plain(0))
		row.Client = c.row
		nodes := &named{}
		w.Nodes = nodes
		w.Look = func(_ context.Context, _ tx.State, client string) (broadcaster.Sight, error) {
			nodes.clients = append(nodes.clients, client)
			return broadcaster.Sight{}, nil
		}
		w.attempt(&row)
		row.HeldSince = time.Now()
		w.attempt(&row)
		if want := []string{c.want, c.want, c.want}; !slices.Equal(nodes.clients, want) {
			t.Errorf("%+v: called for %q", c, nodes.clients)
		}
		if relays := c.row == "" && c.client != ""; nodes.lane != relays {
			t.Errorf("%+v: sent as one of a lane: %t", c, nodes.lane)
		}
	}
}

// A transaction of several clients is sent, looked for and probed in the name of the client in whose
// turn its row was leased, even if another client submitted it first. Refusals that any client would get count for
// all of them.
func TestNodesAreCalledForTheTurnsClient(t *testing.T) {
	w := newWorld(t, 1)
	_, row := w.acceptFrom("mallory", plain(0))
	w.acceptFrom("alice", plain(0))
	accepted := w.state(row).Accepted
	accepted.Client = "alice"
	row.Client, row.Account = "alice", tx.AccountOf(accepted)
	answer := func(o tx.Cause) tx.Answer { return tx.Answer{Class: tx.Retry, Cause: o, Endpoint: "a"} }
	nodes := &scripted{answers: []tx.Answer{answer(tx.Funds), answer(tx.RateLimited), answer(tx.Unreachable), answer(tx.Fee), {Class: tx.Taken, Endpoint: "a"}}}
	w.Nodes = nodes
	var looked []string
	w.Look = func(_ context.Context, _ tx.State, client string) (broadcaster.Sight, error) {
		looked = append(looked, client)
		return broadcaster.Sight{}, nil
	}
	var forAll []bool
	for range nodes.answers {
		done := w.attempt(&row)
		forAll = append(forAll, done.ForAll)
		if done.Account != row.Account {
			t.Errorf("done on account %x", done.Account)
		}
	}
	for _, of := range nodes.got {
		looked = append(looked, of.Client)
	}
	if slices.ContainsFunc(looked, func(client string) bool { return client != "alice" }) {
		t.Errorf("called for %q", looked)
	}
	if want := []bool{false, false, false, true, true}; !slices.Equal(forAll, want) {
		t.Errorf("results for all owners: %v, want %v", forAll, want)
	}
}
