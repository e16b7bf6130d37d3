// Package broadcaster makes one attempt at a time: it loads the bytes, checks in the log
// that they are still to be sent, hands them to nodes, and records the nodes' answers. It imports
// commands, domain and eventlog, and no other process manager.
package broadcaster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Nodes hands bytes to a chain's endpoints.
type Nodes interface {
	// Send hands raw to the fan-out's share of the endpoints, rotating with the attempt,
	// each with its own deadline. It returns an answer for each of them, at least one. It
	// may return when one endpoint has the bytes; the answer of an endpoint that has not
	// answered by then is tx.Unknown.
	// The first attempt counts as 1.
	Send(ctx context.Context, raw []byte, hash chain.Hash, attempt int, of tx.Sending) []tx.Answer
	// SendAll hands raw to every healthy endpoint, and waits for all of them unless one
	// accepts it.
	SendAll(ctx context.Context, raw []byte, hash chain.Hash, attempt int, of tx.Sending) []tx.Answer
}

// Sight is the result of a look at the chain for one transaction.
type Sight struct {
	// Over means that a verdict was recorded: there is nothing to send.
	Over bool
	// Wants is the next nonce that the chain wants in the transaction's sequence, if Known.
	Wants uint64
	Known bool
}

// Broadcaster makes the attempts of one chain.
type Broadcaster struct {
	Transactions commands.Transactions
	Vault        commands.Vault
	Nodes        Nodes
	// Look asks the chain about one transaction: receipt first, then nonce, then time. It
	// records the verdict if there is one. client is the client whose transaction it is.
	Look     func(ctx context.Context, s tx.State, client string) (Sight, error)
	Schedule tx.Schedule
	// Submitted, when set, is called with the outcome of each attempt that sent bytes, for
	// metrics. attempt is 1 for the transaction's first.
	Submitted func(outcome tx.Class, attempt int)
	Now       func() time.Time
	Crash     func(point string)
	Log       *slog.Logger

	probes probes
}

// Attempt makes one attempt at a leased row. It returns the row's next due time, and the
// account's standing as shown by the attempt.
func (b *Broadcaster) Attempt(ctx context.Context, w tx.Work) tx.Done {
	r, err := b.Transactions.Load(ctx, tx.Stream(w.Chain, w.Hash))
	of := tx.Sending{Client: w.Client}
	if client := r.State.OwnerOf(w.Account); err == nil && client != "" {
		// Calls to nodes and probes are the client's in whose turn the row was leased, not the first
		// submitter's. A row that the relay has signed takes the turns of the relay, which all its
		// clients share, and the account tells the client.
		of = tx.Sending{Client: client, Lane: w.Client == ""}
		w.Client = client
	}
	done := b.attempt(ctx, w, of, r, err)
	done.Account = w.Account
	now, probes := b.Now(), !w.HeldSince.IsZero()
	switch {
	case done.Standing == tx.Unable:
		done.NextAt = now.Add(b.probing(w))
	case !probes:
		done.Standing = "" // the row does not probe the account
	case done.Standing == "":
		done.Standing = tx.Unclear
	}
	if probes && (done.Standing == tx.Unable || done.Standing == tx.Unclear) {
		done.NextAt = b.probes.at(prober{of.Client, of.Lane}, now, done.NextAt)
	}
	return done
}

// attempt continues from the transaction as it was loaded.
func (b *Broadcaster) attempt(ctx context.Context, w tx.Work, of tx.Sending, r handler.Result[tx.State], err error) tx.Done {
	done := tx.Done{Chain: w.Chain, Hash: w.Hash, Attempts: w.Attempts, Note: w.Note}
	if err == nil && r.State.Sendable() && max(w.Attempts, r.State.Attempt) > 0 {
		done.Attempts = max(w.Attempts, r.State.Attempt)
		// An earlier attempt may have been mined, and a node may accept the same bytes
		// again nevertheless: ask the chain before every repeat.
		if stop := b.look(ctx, r.State, w, &done); stop {
			done.Standing, done.ForAll = tx.Unasked, true
			return done
		}
		r, err = b.Transactions.Load(ctx, tx.Stream(w.Chain, w.Hash)) // the look took time
	}
	switch {
	case err != nil:
		return b.later(done, "the log could not be read", err)
	case !r.State.Sendable():
		// The queue has not folded the end yet; it will.
		done.Standing, done.ForAll = tx.Unasked, true
		return b.again(done, tx.Outcome{Class: tx.Taken}, w, "no longer wanted")
	}
	if left := w.ExpiresAt; left != 0 && uint64(b.Now().Unix()) >= left {
		// Wait for the block that proves the expiry.
		done.NextAt, done.Note = b.Now().Add(b.Schedule.RetryMax), "validBefore has passed; a block must say so"
		done.Standing, done.ForAll = tx.Unasked, true
		return done
	}
	return b.send(ctx, w, of, r, done)
}

// look asks the chain. stop means that nothing should be sent now; done then has the next
// due time.
func (b *Broadcaster) look(ctx context.Context, s tx.State, w tx.Work, done *tx.Done) (stop bool) {
	short, cancel := part(ctx, lookPart)
	defer cancel()
	sight, err := b.Look(short, s, w.Client)
	switch {
	case err != nil:
		// A failed look does not hold the bytes back.
		b.Log.Debug("the chain could not be read before a repeat", "tx", w.Hash, "err", err)
		return false
	case sight.Over:
		*done = b.again(*done, tx.Outcome{Class: tx.Taken}, w, "verdict recorded")
		return true
	case sight.Known && sight.Wants < w.Nonce:
		done.Note, done.WaitNonce = fmt.Sprintf("waiting for nonce %d", sight.Wants), sight.Wants+1
		done.NextAt = b.Now().Add(b.patience(w))
		return true
	}
	return false
}

func (b *Broadcaster) send(ctx context.Context, w tx.Work, of tx.Sending, r handler.Result[tx.State], done tx.Done) tx.Done {
	raw, err := b.Vault.Bytes(ctx, payload.Ref{Chain: w.Chain, Hash: w.Hash})
	if err != nil {
		if errors.Is(err, payload.ErrGone) && b.unwanted(ctx, w) {
			return b.again(done, tx.Outcome{Class: tx.Taken}, w, "no longer wanted")
		}
		done = b.later(done, "payload not read", err)
		if errors.Is(err, payload.ErrGone) {
			// An operator has to help.
			b.Log.Error("payload of an open transaction is gone", "tx", w.Hash)
			done.NextAt = b.Now().Add(WaitMax)
		}
		return done
	}
	done.Attempts++
	b.crash("send.before")
	short, cancel := part(ctx, sendPart)
	defer cancel()
	of.Repeat = r.State.Tried()
	answers := b.Nodes.Send(short, raw, w.Hash, done.Attempts, of)
	everyone := false
	if tx.Summarise(answers, true).Permanent() {
		// A refusal is permanent only if every endpoint agrees: ask the others.
		answers, everyone = b.Nodes.SendAll(short, raw, w.Hash, done.Attempts, of), true
	}
	b.crash("send.after")
	done.SentAt = b.Now()
	outcome := tx.Summarise(answers, everyone)
	if b.Submitted != nil {
		b.Submitted(classOf(outcome, answers), done.Attempts)
	}
	if err := b.record(ctx, w, r, tx.Report{Attempt: done.Attempts, Answers: answers, Everyone: everyone, At: done.SentAt}); err != nil {
		return b.later(done, "the attempt could not be recorded", err)
	}
	done = b.again(done, outcome, w, "")
	done.Standing, done.ForAll = outcome.Standing(), outcome.OfAll()
	if outcome.Cause == tx.NonceTooLow || outcome.Cause == tx.NonceTooHigh || outcome.Cause == tx.Replayed || outcome.Cause == tx.TooLate {
		b.look(ctx, r.State, w, &done)
	}
	return done
}

// classOf is the class of an attempt's outcome: known if nodes had the bytes already and none accepted
// them anew.
func classOf(o tx.Outcome, answers []tx.Answer) tx.Class {
	if o.Class == tx.Taken && !slices.ContainsFunc(answers, func(a tx.Answer) bool { return a.Class == tx.Taken }) {
		return tx.Known
	}
	return o.Class
}

// unwanted reports whether a transaction was canceled in the meantime.
func (b *Broadcaster) unwanted(ctx context.Context, w tx.Work) bool {
	r, err := b.Transactions.Load(ctx, tx.Stream(w.Chain, w.Hash))
	return err == nil && !r.State.Sendable()
}

// Shares of the time that an attempt has left. A node that hangs during the look leaves
// time to send. A node that hangs during the sending leaves time to record the others'
// answers.
const (
	lookPart = 0.3
	sendPart = 0.85
)

func part(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(share*float64(time.Until(deadline))))
}

func (b *Broadcaster) record(ctx context.Context, w tx.Work, r handler.Result[tx.State], report tx.Report) error {
	_, err := b.Transactions.DoFrom(ctx, tx.Stream(w.Chain, w.Hash), r, report, eventlog.Meta{Actor: "broadcaster"})
	return err
}

// again schedules the next attempt.
func (b *Broadcaster) again(done tx.Done, o tx.Outcome, w tx.Work, note string) tx.Done {
	done.NextAt = b.Schedule.Next(w.Hash, max(done.Attempts, 1), o, b.Now(), w.ExpiresAt)
	if done.Note = note; note == "" {
		done.Note = o.String()
	}
	return done
}

// WaitMax is the longest pause of a transaction that does not wait for a node: it waits for
// a lower nonce, whose landing wakes it anyway, or for its bytes.
const WaitMax = time.Minute

// patience returns a pause that grows with the time that a transaction has waited for a
// lower nonce.
func (b *Broadcaster) patience(w tx.Work) time.Duration {
	var waited time.Duration
	if w.WaitNonce != 0 {
		waited = b.Now().Sub(w.WaitSince)
	}
	return min(max(waited/2, b.Schedule.RebroadcastMin), WaitMax)
}

// probing returns the pause after an account was found unable: about a block's time, and
// longer the longer it is on hold.
func (b *Broadcaster) probing(w tx.Work) time.Duration {
	var held time.Duration
	if !w.HeldSince.IsZero() {
		held = b.Now().Sub(w.HeldSince)
	}
	return min(max(held/4, 4*b.Schedule.RetryMin), b.Schedule.RetryMax)
}

// later schedules a retry soon after a transient error on our own side, without counting an
// attempt.
func (b *Broadcaster) later(done tx.Done, what string, err error) tx.Done {
	b.Log.Warn(what, "tx", done.Hash, "err", err)
	done.NextAt, done.Note = b.Now().Add(b.Schedule.RetryMax/4), what
	return done
}

func (b *Broadcaster) crash(point string) {
	if b.Crash != nil {
		b.Crash(point)
	}
}
