package main_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// judgeMost limits the time of the judgement of one test.
const judgeMost = patience

// judge ends each test with a world. It verifies the store, and checks log, broadcasts, client
// responses and chain against the promises. Only the first call counts: a test whose store ends
// before the world calls it earlier.
func (w *world) judge(t *testing.T) (f promises.Figures) {
	if t.Failed() || t.Skipped() || w.judged {
		return f
	}
	w.judged, w.blamed = true, map[promises.Number]int{}
	ctx, cancel := context.WithTimeout(context.Background(), judgeMost)
	defer cancel()
	began := time.Now()
	if dir, _ := w.engine(); dir != "" {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && len(w.proxy.Deliveries()) == 0 {
			return f // no service ever ran on it
		}
	}
	store, err := w.inspect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // it was only read
	report, err := verify.Run(ctx, verify.Options{Work: store, Log: store, Began: began, Now: time.Now, Again: w.inspect, Sparse: w.eventsURL() != ""})
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	w.blame(t, report.Violations)
	w.observe(t)
	f = w.replay(t, ctx, store)
	for n, why := range w.broken {
		if w.blamed[n] == 0 {
			t.Errorf("%s was to be broken, as %s, and the judge has seen nothing of it", n, why)
		}
	}
	t.Logf("judged: %d events of %d transactions, %d sends, %d calls; first attempts %s", f.Events, f.Transactions, f.Sent, f.Calls, f.Late)
	return f
}

// observe records the present chain. A test that replaces final blocks calls it before, so that
// the judge knows the blocks.
func (w *world) observe(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), judgeMost)
	defer cancel()
	if err := rig.Observe(ctx, w.ledger, w.chain.URL(), uint64(w.confirmations)); err != nil {
		t.Fatalf("read the chain: %v", err)
	}
}

// blame counts violations, and reports all that the test did not cause on purpose.
func (w *world) blame(t *testing.T, found []promises.Violation) {
	t.Helper()
	for _, v := range found {
		w.blamed[v.Promise]++
		if w.broken[v.Promise] == "" {
			t.Error(v)
		}
	}
}

func (w *world) inspect(ctx context.Context) (verify.Store, error) {
	dir, dsn := w.engine()
	if dir != "" {
		return embedded.Inspect(ctx, dir)
	}
	if w.eventsURL() != "" {
		return w.inspectBeside(ctx)
	}
	return postgres.Inspect(ctx, cmp.Or(w.direct, dsn))
}

// replay passes the whole history to the judge in the order of time; all processes here share
// one clock. The log keeps its own order.
func (w *world) replay(t *testing.T, ctx context.Context, store verify.Store) promises.Figures {
	t.Helper()
	w.measure.Decode, w.measure.Chain = app.Decode, func(id chain.ID) promises.Chain {
		if id != rig.TempoChain {
			return nil
		}
		return w.ledger
	}
	judge := promises.New(w.measure)
	sends, calls := w.proxy.Deliveries(), w.history.Calls()
	until := func(at time.Time) {
		for len(sends) > 0 || len(calls) > 0 {
			switch {
			case len(sends) > 0 && (len(calls) == 0 || sends[0].At.Before(calls[0].Ended)):
				if !sends[0].At.Before(at) {
					return
				}
				node := cmp.Or(sends[0].Door, "proxy")
				w.blame(t, judge.Sent(promises.Sent{Chain: rig.TempoChain, Node: node, Raw: sends[0].Raw, At: sends[0].At}))
				sends = sends[1:]
			default:
				if !calls[0].Ended.Before(at) {
					return
				}
				w.blame(t, judge.Call(calls[0]))
				calls = calls[1:]
			}
		}
	}
	newest := time.Time{}
	for after := eventlog.Position(0); ; {
		page, err := store.Page(ctx, after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if after = e.Position; e.At.After(newest) {
				newest = e.At
			}
			until(newest)
			w.blame(t, judge.Event(e))
		}
	}
	until(time.Now().Add(time.Hour))
	w.blame(t, judge.Finish(promises.End{Now: newest, Quiet: w.quiet}))
	return judge.Figures()
}
