package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// transaction diagnoses one transaction, by its hash.
func (x Examination) transaction(ctx context.Context, in app.Inspection, heads map[chain.ID]seen, text string) (*Part, error) {
	var on []chain.ID
	for _, c := range x.Config.Chains {
		on = append(on, c.ID)
	}
	name, err := auditor.Subject(ctx, in.Log, text, on, nil)
	if err != nil {
		return nil, err
	}
	moment, err := auditor.Replay(ctx, in.Log, auditor.Life{Stream: name, Plan: x.Config.Scheduler.Schedule}, auditor.Until{})
	if err != nil {
		return nil, err
	}
	s, is := moment.State.(tx.State)
	if !is {
		return nil, fmt.Errorf("%s is not a transaction: %w", text, auditor.ErrSubject)
	}
	ref := payload.Ref{Chain: s.Accepted.Chain, Hash: s.Accepted.Hash}
	rows, err := in.Work.Work(ctx, []payload.Ref{ref})
	if err != nil {
		return nil, err
	}
	p := partOf("transaction " + s.Accepted.Hash.String())
	p.say("chain", "%s", s.Accepted.Chain)
	p.say("status", "%s", s.Status)
	p.say("sender", "%s, nonce %d under the nonce key %s", s.Accepted.Sender, s.Accepted.Nonce, s.Accepted.NonceKey)
	p.say("last event", "%s", moment.Why)
	row, queued := rows[ref]
	if !s.Sendable() {
		return p, nil // it has ended, or only waits for its block to become final
	}
	if !queued {
		p.find(Finding{Code: "not-queued", Says: "it is open, and not in the due queue", Next: "the scheduler's reader adds it when it runs", Do: "see the readers above, and " + x.Program + " verify"})
		return p, nil
	}
	x.waiting(p, row, heads[s.Accepted.Chain])
	return p, x.chainsNonce(ctx, in, p, s, heads[s.Accepted.Chain])
}

// waiting explains why an open transaction is not mined, by its row in the queue.
func (x Examination) waiting(p *Part, r tx.Work, on seen) {
	now := x.Now()
	eligible := time.Unix(int64(r.EligibleAt), 0) //nolint:gosec // after 1970
	p.say("attempts", "%d", r.Attempts)
	if r.Note != "" {
		p.say("last answer", "%s", r.Note)
	}
	switch {
	case eligible.After(now):
		p.say("waits for", "its window: it is sent from %s on", stamp(eligible))
	case r.WaitNonce != 0:
		p.find(Finding{
			Code: "nonce-gap", Says: fmt.Sprintf("it waits for nonce %d of its sender, since %s", r.WaitNonce-1, stamp(r.WaitSince)),
			Next: "it is sent when the chain reaches its nonce", Do: fmt.Sprintf("submit the transaction with nonce %d, or ask its sender for it", r.WaitNonce-1),
		})
	case !r.HeldSince.IsZero():
		p.find(Finding{
			Code: "account-held", Says: fmt.Sprintf("its fee payer cannot pay, or its access key has no rights, since %s", stamp(r.HeldSince)),
			Next: "one transaction of the account is tried about once a block", Do: "fund the fee payer, or authorize the access key",
		})
	case r.Parked:
		p.say("waits for", "transactions of its sender with lower nonces, of which at most %d are at nodes", x.Config.Scheduler.Window)
	case on.err != nil || on.head.Number == 0:
		p.find(Finding{Code: "no-endpoint", Says: "no endpoint of its chain answers", Next: "it is sent when one does", Do: "see the endpoints above"})
	case r.NextAt.Before(now.Add(-dueMost)):
		p.find(Finding{Code: "due-not-sent", Says: fmt.Sprintf("it has been due since %s, and no worker has taken it", stamp(r.NextAt)), Do: "start a service, or look at its workers"})
	default:
		p.say("waits for", "a block; it is sent again at %s", stamp(r.NextAt))
	}
}

// chainsNonce compares the transaction's nonce with the chain's.
func (x Examination) chainsNonce(ctx context.Context, in app.Inspection, p *Part, s tx.State, on seen) error {
	node := in.Nodes[s.Accepted.Chain]
	if node == nil || on.err != nil || on.head.Number == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	next, err := nonceOf(ctx, node, chain.Sequence{Chain: s.Accepted.Chain, Sender: s.Accepted.Sender, Key: s.Accepted.NonceKey})
	switch {
	case errors.Is(err, context.DeadlineExceeded) || err != nil:
		p.say("chain's next nonce", "unknown: %v", err)
		return nil //nolint:nilerr // the diagnosis says so
	case next > s.Accepted.Nonce:
		p.find(Finding{
			Code: "nonce-used", Says: fmt.Sprintf("the chain's next nonce is %d, so another transaction has used nonce %d, or its block is not recorded yet", next, s.Accepted.Nonce),
			Next: "the watcher records it as executed or stale when it reaches that block",
		})
	}
	p.say("chain's next nonce", "%d", next)
	return nil
}

func nonceOf(ctx context.Context, node verify.Node, id chain.Sequence) (uint64, error) {
	head, err := node.Head(ctx)
	if err != nil {
		return 0, err
	}
	nonces, err := node.Nonces(ctx, head, []chain.Sequence{id})
	if err != nil {
		return 0, err
	}
	return nonces[0], nil
}
