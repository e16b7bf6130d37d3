package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// reading counts the reads of streams, each of which takes a second.
type reading struct {
	port.Store
	mu    sync.Mutex
	reads map[eventlog.Stream]int
	err   error // of the next read
}

func (r *reading) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	time.Sleep(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[s]++
	if err := r.err; err != nil {
		r.err = nil
		return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, err) }
	}
	return r.Store.ReadStream(ctx, s, after)
}

// joinAll accepts n transactions and makes two more clients submit each of them.
func joinAll(t *testing.T, db *embedded.DB, n uint64) []chain.Hash {
	h, hashes := handling(db), []chain.Hash{}
	for i := range n {
		a := accepted(i)
		a.Client = "first"
		for _, a.Client = range []string{"first", "second", "third"} {
			if !command(t, h, a.Hash, tx.Accept{Accepted: a}) {
				t.Fatal("nothing was recorded")
			}
		}
		hashes = append(hashes, a.Hash)
	}
	return hashes
}

// older rewrites the resubmissions of a log into another log, as the version before terms wrote them.
func older(t *testing.T, log port.Store) *embedded.DB {
	t.Helper()
	db := open(t)
	for batch, err := range log.ReadAll(t.Context(), 0, eventlog.Filter{}, 100) {
		check(t, err)
		for _, e := range batch.Events {
			if e.Name == "tx.resubmitted.v1" {
				var members map[string]any
				check(t, json.Unmarshal(e.Data, &members))
				delete(members, "terms")
				e.Data, err = json.Marshal(members)
				check(t, err)
			}
			_, err := db.Log().Append(t.Context(), e.Stream, e.Version-1, e.Event)
			check(t, err)
		}
	}
	return db
}

// A resubmission costs the feeder, for which all clients' first attempts wait, no read of a stream.
// The first events of resubmissions that an earlier version recorded are read once for each
// transaction, side by side, and make the same rows.
func TestJoinsReadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 64
		db := open(t)
		hashes := joinAll(t, db, many)
		log := &reading{Store: db.Log(), reads: map[eventlog.Stream]int{}}
		feed(t, log, db.Work())
		if len(log.reads) > 0 {
			t.Errorf("%d streams were read", len(log.reads))
		}
		was := older(t, db.Log())
		log = &reading{Store: was.Log(), reads: map[eventlog.Stream]int{}}
		began := time.Now()
		feed(t, log, was.Work())
		for s, n := range log.reads {
			if n > 1 {
				t.Errorf("%s was read %d times", s, n)
			}
		}
		if took := time.Since(began); len(log.reads) != many || took > many/8*time.Second {
			t.Errorf("%d streams were read in %s, a second each", len(log.reads), took)
		}
		want, err := db.Work().Find(t.Context(), id, hashes)
		check(t, err)
		got, err := was.Work().Find(t.Context(), id, hashes)
		check(t, err)
		if diff := cmp.Diff(want, got); diff != "" || len(want[0].Owners) != 2 {
			t.Errorf("rows (-of new resubmissions +of old ones)\n%s", diff)
		}
	})
}

// A read that fails stops the feeder before the resubmission, which is fed later.
func TestUnreadJoinIsFedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		hash := joinAll(t, db, 1)[0]
		was := older(t, db.Log())
		gone := errors.New("the store is gone")
		log := &reading{Store: was.Log(), reads: map[eventlog.Stream]int{}, err: gone}
		var stuck *eventlog.Stuck
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := feeder(log, was.Work()).Run(ctx); !errors.As(err, &stuck) || !errors.Is(err, gone) || stuck.At != 2 {
			t.Fatalf("ended with %v", err)
		}
		feed(t, log, was.Work())
		if rows, err := was.Work().Find(t.Context(), id, []chain.Hash{hash}); err != nil || len(rows[0].Owners) != 2 {
			t.Errorf("rows %+v: %v", rows, err)
		}
	})
}

// A transaction with a final verdict is never sent again: who submits it is no further owner of its row.
func TestJoinOfTheSealedChangesNothing(t *testing.T) {
	db := open(t)
	h, a := handling(db), accepted(1)
	block := chain.Block{Number: 7, Hash: chain.Keccak([]byte("7"))}
	for i, c := range []tx.Command{
		tx.Accept{Accepted: a}, tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}, At: a.At},
		tx.Accept{Accepted: tx.Accepted{Client: "early", At: a.At}},
		tx.Finalize{Final: block, At: a.At}, tx.Accept{Accepted: tx.Accepted{Client: "late", At: a.At}},
	} {
		if !command(t, h, a.Hash, c) {
			t.Fatalf("command %d recorded nothing", i)
		}
	}
	feed(t, db.Log(), db.Work())
	rows, err := db.Work().Find(t.Context(), id, []chain.Hash{a.Hash})
	check(t, err)
	if owners := rows[0].Owners; len(owners) != 1 || owners[0].Client != "early" {
		t.Errorf("owners %+v", owners)
	}
	if u, _, err := db.Work().Usage(t.Context(), scheduler.Reader, "early"); err != nil || u != (tx.Usage{}) {
		t.Error(fmt.Sprint("an executed transaction uses ", u, " of a quota: ", err))
	}
}
