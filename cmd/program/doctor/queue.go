package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// Limits of the look at the queue.
const (
	rowsAtOnce   = 500
	rowsMost     = 200_000 // rows that are read
	findingsMost = 10      // of one kind
)

// gap is a sequence whose transactions wait for a nonce.
type gap struct {
	chain.Sequence
	missing uint64 // the nonce that the chain expects
	waiting int
	since   time.Time
}

// account is an account on which transactions wait.
type account struct {
	one     tx.Work // of the waiting
	waiting int
}

// work is a summary of the due queue.
type work struct {
	open, due, parked, held, notYet int
	oldest                          tx.Work // of the due rows that nothing holds back
	gaps                            map[chain.Sequence]*gap
	accounts                        map[tx.Account]*account
	cut                             bool // there are more rows
}

// queue diagnoses the due queue.
func (x Examination) queue(ctx context.Context, in app.Inspection) (*Part, error) {
	w := work{gaps: map[chain.Sequence]*gap{}, accounts: map[tx.Account]*account{}}
	now := x.Now()
	read := 0
	for after := (payload.Ref{}); ; {
		refs, err := in.Work.Queued(ctx, after, rowsAtOnce)
		if err != nil {
			return nil, err
		}
		rows, err := in.Work.Work(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			w.count(rows[ref], now)
			after = ref
		}
		if read += len(refs); len(refs) < rowsAtOnce {
			break
		}
		if w.cut = read >= rowsMost; w.cut {
			break
		}
	}
	return w.part(now), nil
}

func (w *work) count(r tx.Work, now time.Time) {
	if r.Phase != tx.Open {
		return
	}
	w.open++
	switch eligible := time.Unix(int64(r.EligibleAt), 0); { //nolint:gosec // after 1970
	case eligible.After(now):
		w.notYet++
	case r.WaitNonce != 0:
		w.waits(r)
	case !r.HeldSince.IsZero():
		w.held++
		if w.accounts[r.Account] == nil {
			w.accounts[r.Account] = &account{one: r}
		}
		w.accounts[r.Account].waiting++
	case r.Parked:
		w.parked++
	case r.NextAt.Before(now):
		if w.due++; w.oldest.NextAt.IsZero() || r.NextAt.Before(w.oldest.NextAt) {
			w.oldest = r
		}
	}
}

// waits counts a row whose nonce is above the chain's next one.
func (w *work) waits(r tx.Work) {
	id := chain.Sequence{Chain: r.Chain, Sender: r.Sender, Key: r.NonceKey}
	g := w.gaps[id]
	if g == nil {
		g = &gap{Sequence: id, missing: r.WaitNonce - 1, since: r.WaitSince}
		w.gaps[id] = g
	}
	g.waiting++
	if r.WaitSince.Before(g.since) {
		g.since = r.WaitSince
	}
}

func (w *work) part(now time.Time) *Part {
	p := partOf("queue")
	more := ""
	if w.cut {
		more = fmt.Sprintf(" among the first %d rows", rowsMost)
	}
	p.say("open", "%d transactions%s", w.open, more)
	p.say("due now", "%d", w.due)
	p.say("not valid yet", "%d", w.notYet)
	p.say("behind lower nonces", "%d", w.parked)
	if late := now.Sub(w.oldest.NextAt); w.due > 0 && late > dueMost {
		p.find(Finding{
			Code: "due-not-sent", Says: fmt.Sprintf("%d transactions are due and not sent; %s on chain %s has been for %s", w.due, w.oldest.Hash, w.oldest.Chain, late.Round(time.Second)),
			Do: "start a service, or look at its workers: scheduler.max-concurrency, and the endpoints above",
		})
	}
	w.findGaps(p)
	w.findAccounts(p)
	return p
}

// findAccounts reports the accounts that hold the most transactions.
func (w *work) findAccounts(p *Part) {
	all := slices.SortedFunc(maps.Values(w.accounts), func(a, b *account) int {
		return cmp.Or(cmp.Compare(b.waiting, a.waiting), cmp.Compare(a.one.Hash.String(), b.one.Hash.String()))
	})
	for i, a := range all {
		if i == findingsMost {
			p.say("further accounts", "%d", len(all)-i)
			break
		}
		p.find(Finding{
			Code: "account-held", Says: fmt.Sprintf("%d transactions on chain %s, such as %s of %s, wait for their fee payer's balance or their access key's rights, since %s: %s", a.waiting, a.one.Chain, a.one.Hash, a.one.Sender, stamp(a.one.HeldSince), a.one.Note),
			Next: "one of them is tried about once a block", Do: "fund the fee payer, or authorize the access key",
		})
	}
}

// findGaps reports the sequences that have waited longest.
func (w *work) findGaps(p *Part) {
	all := slices.SortedFunc(maps.Values(w.gaps), func(a, b *gap) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.Sender.String(), b.Sender.String()))
	})
	for i, g := range all {
		if i == findingsMost {
			p.say("further nonce gaps", "%d senders", len(all)-i)
			break
		}
		p.find(Finding{
			Code: "nonce-gap", Says: fmt.Sprintf("%d transactions of %s on chain %s under the nonce key %s wait for nonce %d, since %s", g.waiting, g.Sender, g.Chain, g.Key, g.missing, stamp(g.since)),
			Next: "they are sent when the chain reaches their nonces", Do: fmt.Sprintf("submit the transaction with nonce %d, or ask its sender for it", g.missing),
		})
	}
}
