package app

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/broadcaster"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/watcher"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// Chain is one configured chain.
type Chain struct {
	ID    chain.ID
	Nodes broadcaster.Nodes
	Node  watcher.Node
	// OnBehalf returns a reader for a client's requests. Its calls to nodes use the client's share.
	OnBehalf func(client string) watcher.Lookup
	// Repeating returns a reader for repeated attempts at a client's transactions.
	Repeating func(client string) watcher.Lookup
	// Keychain returns a reader of the access keys that a client's transactions claim.
	Keychain func(client string) grouping.Keychain
}

// ChainOf returns a chain that is reached through a pool of its nodes.
func ChainOf(p *rpc.Pool, id chain.ID) Chain {
	reader := p.Reader() // one reader, so that its callers share their reads
	return Chain{
		ID: id, Nodes: p, Node: reader,
		OnBehalf:  func(client string) watcher.Lookup { return reader.OnBehalf(client) },
		Repeating: func(client string) watcher.Lookup { return reader.Repeating(client) },
		Keychain:  func(client string) grouping.Keychain { return reader.Repeating(client) },
	}
}

// Decode reads signed bytes of any supported type. A legacy transaction begins with its list,
// the other Ethereum types with a small type byte; the Tempo decoder accepts or refuses all
// else.
func Decode(raw []byte) (chain.Signed, error) {
	const legacy, ethereumTypes = 0xc0, 0x04
	if len(raw) == 0 || raw[0] >= legacy || raw[0] <= ethereumTypes {
		return ethereum.Decode(raw)
	}
	return tempo.Decode(raw)
}

func (a *App) watcher(c Chain) *watcher.Watcher {
	return &watcher.Watcher{
		Chain: c.ID, Node: c.Node, For: c.Repeating, Board: a.Ports.Storage.Board, Transactions: a.Transactions,
		Poll: a.Settings.WatcherPoll, Now: a.Ports.Now,
		Moved: func(head, final chain.Block) {
			a.served.chain(c.ID, head, final)
			a.Ports.Metrics.Block(c.ID.String(), "head", head.Number)
			a.Ports.Metrics.Block(c.ID.String(), "final", final.Number)
		},
		Crash: a.Ports.Crash, Log: a.Ports.Log,
	}
}

func (a *App) worker(c Chain) *scheduler.Worker {
	looker := a.watcher(c)
	b := &broadcaster.Broadcaster{
		Transactions: a.Transactions, Vault: a.Vault, Nodes: c.Nodes,
		Look: func(ctx context.Context, s tx.State, client string) (broadcaster.Sight, error) {
			sight, err := looker.Look(ctx, c.Repeating(client), s)
			return broadcaster.Sight(sight), err
		},
		Schedule: a.Settings.Schedule, Now: a.Ports.Now,
		Submitted: func(outcome tx.Class, attempt int) {
			a.Ports.Metrics.Submit(c.ID.String(), outcome, attempt == 1)
		},
		Crash: a.Ports.Crash, Log: a.Ports.Log,
	}
	return &scheduler.Worker{
		Chain: c.ID, Queue: a.Ports.Storage.Queue, Holder: a.Settings.Holder,
		Attempt: func(ctx context.Context, w tx.Work) tx.Done {
			done := b.Attempt(ctx, w)
			if !done.SentAt.IsZero() {
				a.Ports.Metrics.Attempt(c.ID.String(), late(w, done))
			}
			return done
		},
		Lease: a.Settings.WorkLease, Poll: a.Settings.SchedulerPoll, Slots: a.Settings.Slots, Log: a.Ports.Log,
	}
}

// late is the time from eligibility to the first send; negative for a repeat.
func late(w tx.Work, done tx.Done) time.Duration {
	if !w.SentAt.IsZero() || w.Attempts > 0 {
		return -1
	}
	return max(done.SentAt.Sub(w.NextAt), 0)
}
