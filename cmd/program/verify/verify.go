// Package verify checks a store for consistency with itself and with the chain: that the log is
// readable and keeps the promises about a log; that read models and due queue follow from it;
// that signed bytes exist as long as they are needed and no longer; and that sealed verdicts
// agree with the chain.
//
// It reads and never writes. Memory does not grow with the rows: streams are read a few hundred
// at a time. For each ended transaction the judge of the log keeps about 300 bytes, and for each
// event its id while ids are compared.
package verify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// Store is a snapshot of a store.
type Store interface {
	// Head is the position of the last event.
	Head(ctx context.Context) (eventlog.Position, error)
	// Page is the next events of the log, up to most of them; none at its end. An event whose
	// stream has no row has no stream.
	Page(ctx context.Context, after eventlog.Position, most int) ([]eventlog.Recorded, error)
	// Names lists up to most streams by prefix. after is the next value of the previous call.
	Names(ctx context.Context, prefix string, after int64, most int) (names []eventlog.Stream, next int64, err error)
	// Ending lists up to most streams by the end of their names. It reads the names of all streams.
	Ending(ctx context.Context, ending string, most int) ([]eventlog.Stream, error)
	// Stream is the events of a stream after a version, up to most of them; fewer at its end.
	Stream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most int) ([]eventlog.Recorded, error)
	// Streams is all events of some streams, each stream's in order.
	Streams(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream][]eventlog.Recorded, error)
	// Known reports which of the named streams exist.
	Known(ctx context.Context, names []eventlog.Stream) (map[eventlog.Stream]bool, error)
	// Checkpoint is the position of a reader in the queue's database.
	Checkpoint(ctx context.Context, reader string) (eventlog.Position, error)
	// Lease returns the last holder of a lease, and its expiry by the clock of the store that
	// keeps it. The holder is empty if the lease was never held.
	Lease(ctx context.Context, name string) (holder string, until time.Time, err error)
	// Work finds rows of the due queue; Queued lists them by chain and hash.
	Work(ctx context.Context, refs []payload.Ref) (map[payload.Ref]tx.Work, error)
	Queued(ctx context.Context, after payload.Ref, most int) ([]payload.Ref, error)
	// Payloads reports for which transactions sealed bytes and their keys are kept. Kept lists
	// the bytes by chain and hash.
	Payloads(ctx context.Context, refs []payload.Ref) (bytes, keys map[payload.Ref]bool, err error)
	Kept(ctx context.Context, after payload.Ref, most int) ([]payload.Ref, error)
	// View queries the read models.
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

// Options are the stores and chains to verify, and the settings of the run.
type Options struct {
	// Work has queue and read models, Log has the log and the signed bytes. Work was opened
	// first. Usually both are one store.
	Work, Log Store
	// Began is the time when the first store was opened.
	Began time.Time
	// Again reopens the store of the signed bytes, to check suspects a second time: a service
	// may have been running on it.
	Again func(ctx context.Context) (Store, error)
	// Sparse reports that positions of the log have gaps, so that a gap is not a missing event.
	Sparse bool
	// Nodes are the chains to query; a chain without a node is not checked.
	Nodes map[chain.ID]Node
	Now   func() time.Time
	// Judges judge the log in addition to the judge of transactions and groups, each from the
	// first event on.
	Judges []Judge
	// Progress is called with the progress of each step; may be nil.
	Progress func(step string, done, of uint64)
}

// Judge judges a log by further promises.
type Judge interface {
	Event(r eventlog.Recorded) []promises.Violation
	// Finish returns the violations that show only at the end.
	Finish() []promises.Violation
}

// Report is the result of a verification.
type Report struct {
	Clean bool `json:"clean"`
	// Violations are the first violations, at most [ViolationsMax]; Broken counts all, by
	// promise.
	Violations []promises.Violation    `json:"violations"`
	Broken     map[promises.Number]int `json:"broken"`
	// Unchecked lists the parts that could not be checked, and why.
	Unchecked []string `json:"unchecked,omitempty"`

	Head        eventlog.Position            `json:"head"`
	Checkpoints map[string]eventlog.Position `json:"checkpoints"`
	Log         promises.Figures             `json:"log"`
	// Drift is the difference of each table from the rows that follow from the log.
	Drift    map[string]promises.Drift `json:"drift"`
	Payloads Payloads                  `json:"payloads"`
	Chains   map[string]Chain          `json:"chains,omitempty"`
	Took     float64                   `json:"seconds"`
}

// Payloads counts signed bytes.
type Payloads struct {
	Needed  uint64 `json:"needed"`  // of transactions that may still be sent
	Missing uint64 `json:"missing"` // missing payloads, of the needed
	Erased  uint64 `json:"erased"`  // according to the log
	Kept    uint64 `json:"kept"`    // still kept, of the erased
	Orphans uint64 `json:"orphans"` // without a transaction: an unfinished submission
}

// Chain counts the comparisons with a chain.
type Chain struct {
	Verdicts uint64      `json:"verdicts"` // sealed ones
	False    uint64      `json:"false"`
	Head     chain.Block `json:"head"`
}

// ViolationsMax limits the violations that are listed.
const ViolationsMax = 100

// The tables whose drift is reported.
const (
	Transactions = "transactions"
	Groups       = "groups"
	Members      = "group_members"
	Claims       = "group_claims"
	Owners       = "ownership"
	Senders      = "ownership_claims"
	Queue        = "queue"
)

// pageMost is the number of events or streams read at once.
const pageMost = 500

// run is one verification in progress.
type run struct {
	Options
	report   Report
	head     eventlog.Position
	at       positions
	suspects []suspect
	asked    map[chain.ID]*asked
}

// positions are the checkpoints of the readers.
type positions struct {
	rows, groups, owners, queue eventlog.Position
}

// Run verifies a store. An error means that it could not finish; the report then has the
// findings up to that point.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o, asked: map[chain.ID]*asked{}, report: Report{
		Violations: []promises.Violation{}, Broken: map[promises.Number]int{}, Checkpoints: map[string]eventlog.Position{}, Drift: map[string]promises.Drift{},
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
		{"superfluous rows", r.extras},
		{"signed bytes", r.recheck},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// broken records violations.
func (r *run) broken(found ...promises.Violation) {
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
	for name, into := range map[string]*eventlog.Position{transactions.Name: &r.at.rows, groups.Name: &r.at.groups, owners.Name: &r.at.owners} {
		var at int64
		err := r.Work.View().QueryRowContext(ctx, `SELECT position FROM readers WHERE name = $1`, name).Scan(&at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("checkpoint of %s: %w", name, err)
		}
		*into = eventlog.Position(at)
		r.report.Checkpoints[name] = *into
	}
	if r.at.queue, err = r.Work.Checkpoint(ctx, scheduler.Reader); err != nil {
		return err
	}
	r.report.Checkpoints["queue"] = r.at.queue
	for name, at := range r.report.Checkpoints {
		if at > r.head {
			r.broken(promises.Violation{Promise: promises.P18, Evidence: fmt.Sprintf("the checkpoint of %s is %d, but the log ends at %d: it belongs to another log, or the log was cut off", name, at, r.head)})
		}
	}
	return nil
}
