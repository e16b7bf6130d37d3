// Package verify holds a store against itself and against the chain: whether its log
// can be read and keeps the promises that a log can keep, whether read models and due
// queue are what follows from it, whether signed bytes are there as long as they are
// needed and gone when they are not, and whether the chain says what was sealed.
//
// It reads, and never writes. Memory does not grow with the rows: streams are looked at
// some hundreds at a time. Of each transaction that has ended the judge of the log
// keeps about 300 bytes, and of each event its id while ids are compared.
package verify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/promise"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/projections/groups"
	"github.com/tempo-watchtower/watchtower/projections/owners"
	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// Store is a store at one moment.
type Store interface {
	// Head is the position of the last event.
	Head(ctx context.Context) (event.Position, error)
	// Page is the next events of the log, at most so many; none at its end. An event
	// without a stream's row has no stream.
	Page(ctx context.Context, after event.Position, most int) ([]event.Recorded, error)
	// Names lists streams by prefix, at most so many after the one that next named.
	Names(ctx context.Context, prefix string, after int64, most int) (names []event.Stream, next int64, err error)
	// Stream is the events of a stream after a version, at most so many; fewer at its end.
	Stream(ctx context.Context, stream event.Stream, after event.Version, most int) ([]event.Recorded, error)
	// Streams is all events of some streams, each stream's in order.
	Streams(ctx context.Context, names []event.Stream) (map[event.Stream][]event.Recorded, error)
	// Known tells which of some streams there are.
	Known(ctx context.Context, names []event.Stream) (map[event.Stream]bool, error)
	// Checkpoint is how far a reader of the queue's database has come.
	Checkpoint(ctx context.Context, reader string) (event.Position, error)
	// Lease tells who took a lease last, and until when it is theirs by the clock of who
	// keeps it; nobody did when the holder is empty.
	Lease(ctx context.Context, name string) (holder string, until time.Time, err error)
	// Work finds rows of the due queue; Queued lists them by chain and hash.
	Work(ctx context.Context, refs []payload.Ref) (map[payload.Ref]tx.Work, error)
	Queued(ctx context.Context, after payload.Ref, most int) ([]payload.Ref, error)
	// Payloads tells which sealed bytes and which of their keys are kept; Kept lists
	// the bytes by chain and hash.
	Payloads(ctx context.Context, refs []payload.Ref) (bytes, keys map[payload.Ref]bool, err error)
	Kept(ctx context.Context, after payload.Ref, most int) ([]payload.Ref, error)
	// View is for questions to the read models.
	View() *sql.Tx
	Close() error
}

// Node reads a chain.
type Node interface {
	Head(ctx context.Context) (chain.Block, error)
	BlockAt(ctx context.Context, number uint64) (chain.Block, []chain.Hash, error)
	Receipts(ctx context.Context, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error)
	Nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error)
	FindReceipt(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error)
}

// Options are what is verified, and how.
type Options struct {
	// Work has queue and read models; it was opened before Log, which has the log and
	// the signed bytes. Mostly they are one.
	Work, Log Store
	// Began is when the first of them was opened.
	Began time.Time
	// Again opens what has the signed bytes anew: what looks wrong with them is looked
	// at once more, for a service may have been at work on it.
	Again func(ctx context.Context) (Store, error)
	// Sparse says that positions of the log have gaps: then none can be missed by them.
	Sparse bool
	// Nodes are the chains that are asked; none leaves the chain out.
	Nodes map[chain.ID]Node
	Now   func() time.Time
	// Judges judge the log beside the one of transactions and groups, each from its first
	// event on.
	Judges []Judge
	// Progress is told of each step how much is done; nil is not.
	Progress func(step string, done, of uint64)
}

// Judge judges a log by what else is promised.
type Judge interface {
	Event(r event.Recorded) []promise.Violation
	// Finish tells what shows only at the end.
	Finish() []promise.Violation
}

// Report is what was found.
type Report struct {
	Clean bool `json:"clean"`
	// Violations are the first of them, at most [ViolationsMax]; Broken counts all.
	Violations []promise.Violation    `json:"violations"`
	Broken     map[promise.Number]int `json:"broken"`
	// Unchecked are parts that could not be looked at, and why.
	Unchecked []string `json:"unchecked,omitempty"`

	Head        event.Position            `json:"head"`
	Checkpoints map[string]event.Position `json:"checkpoints"`
	Log         promise.Figures           `json:"log"`
	// Drift is how far tables are from what follows from the log.
	Drift    map[string]promise.Drift `json:"drift"`
	Payloads Payloads                 `json:"payloads"`
	Chains   map[string]Chain         `json:"chains,omitempty"`
	Took     float64                  `json:"seconds"`
}

// Payloads counts signed bytes.
type Payloads struct {
	Needed  uint64 `json:"needed"`  // of transactions that may still be sent
	Missing uint64 `json:"missing"` // of these
	Erased  uint64 `json:"erased"`  // as the log says
	Kept    uint64 `json:"kept"`    // of these
	Orphans uint64 `json:"orphans"` // of no transaction: a submission that was not finished
}

// Chain counts what a chain was asked about.
type Chain struct {
	Verdicts uint64      `json:"verdicts"` // sealed ones
	False    uint64      `json:"false"`
	Head     chain.Block `json:"head"`
}

// ViolationsMax bounds how many violations are told one by one.
const ViolationsMax = 100

// The tables whose drift is told.
const (
	Transactions = "transactions"
	Groups       = "groups"
	Members      = "group_members"
	Claims       = "group_claims"
	Owners       = "transaction_owners"
	Senders      = "transaction_claims"
	Queue        = "queue"
)

// pageMost is how many events or streams are looked at together.
const pageMost = 500

// run is one verification under way.
type run struct {
	Options
	report   Report
	head     event.Position
	at       positions
	suspects []suspect
	asked    map[chain.ID]*asked
}

// positions are how far the readers have come.
type positions struct {
	rows, groups, owners, queue event.Position
}

// Run verifies. An error means that it could not be finished; the report then has what
// was found so far.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o, asked: map[chain.ID]*asked{}, report: Report{
		Violations: []promise.Violation{}, Broken: map[promise.Number]int{}, Checkpoints: map[string]event.Position{}, Drift: map[string]promise.Drift{},
	}}
	if r.Progress == nil {
		r.Progress = func(string, uint64, uint64) {}
	}
	began := o.Now()
	err := r.run(ctx)
	r.report.Took = o.Now().Sub(began).Seconds()
	r.report.Clean = err == nil && len(r.report.Broken) == 0 && len(r.report.Unchecked) == 0
	return r.report, err
}

func (r *run) run(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"checkpoints", r.checkpoints},
		{"the log", r.log},
		{"transactions", r.transactions},
		{"groups", r.groups},
		{"what is too much", r.extras},
		{"signed bytes", r.recheck},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// broken notes violations.
func (r *run) broken(found ...promise.Violation) {
	for _, v := range found {
		r.report.Broken[v.Promise]++
		if len(r.report.Violations) < ViolationsMax {
			r.report.Violations = append(r.report.Violations, v)
		}
	}
}

func (r *run) checkpoints(ctx context.Context) (err error) {
	if r.head, err = r.Log.Head(ctx); err != nil {
		return err
	}
	r.report.Head = r.head
	for name, into := range map[string]*event.Position{transactions.Name: &r.at.rows, groups.Name: &r.at.groups, owners.Name: &r.at.owners} {
		var at int64
		err := r.Work.View().QueryRowContext(ctx, `SELECT position FROM readers WHERE name = $1`, name).Scan(&at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("checkpoint of %s: %w", name, err)
		}
		*into = event.Position(at)
		r.report.Checkpoints[name] = *into
	}
	if r.at.queue, err = r.Work.Checkpoint(ctx, scheduler.Reader); err != nil {
		return err
	}
	r.report.Checkpoints["queue"] = r.at.queue
	for name, at := range r.report.Checkpoints {
		if at > r.head {
			r.broken(promise.Violation{Promise: promise.P18, Evidence: fmt.Sprintf("the checkpoint of %s is %d, the log ends at %d: it is another log's, or the log was cut off", name, at, r.head)})
		}
	}
	return nil
}
