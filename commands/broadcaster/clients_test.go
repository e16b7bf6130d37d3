package broadcaster_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/broadcaster"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// named records the client of each call, and refuses all bytes: the account has no funds.
type named struct {
	broadcaster.Nodes
	clients []string
}

func (n *named) Send(_ context.Context, _ []byte, _ chain.Hash, _ int, of tx.Sending) []tx.Answer {
	n.clients = append(n.clients, of.Client)
	return []tx.Answer{{Class: tx.Retry, Cause: tx.Funds, Endpoint: "a"}}
}

// Calls to nodes and probes are the client's whose intent it is, though the row of a transaction that
// the relay has signed has the relay's turn.
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
	}
}
