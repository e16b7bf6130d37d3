package intents_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// engine is an engine for read models: live has the tables, and open opens their shadow.
type engine struct {
	live *sql.DB
	open func(t *testing.T) projections.Shadow
}

// engines runs a test on every engine for read models.
func engines(t *testing.T, test func(t *testing.T, e engine)) {
	enginesOf(t, intents.Model(intent.Codec()), test)
}

// enginesOf is engines for the shadows of a model.
func enginesOf(t *testing.T, model projections.Model, test func(t *testing.T, e engine)) {
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		test(t, engine{db.View(), func(t *testing.T) projections.Shadow {
			s, err := embedded.OpenShadow(t.Context(), db.Dir(), model.Name, model.Version, model.TableNames())
			check(t, err)
			return s
		}})
	})
	t.Run("postgres", func(t *testing.T) {
		url := testenv.Postgres(t)
		db, err := postgres.Open(t.Context(), url, postgres.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close(context.Background())) })
		check(t, db.Migrate(t.Context()))
		migrate := func(ctx context.Context, view *sql.DB) error { return projections.Migrate(ctx, view, migrations.View) }
		check(t, migrate(t.Context(), db.View()))
		test(t, engine{db.View(), func(t *testing.T) projections.Shadow {
			s, err := postgres.OpenShadow(t.Context(), url, model.Name, model.Version, model.TableNames(), migrate)
			check(t, err)
			return s
		}})
	})
}

// history is a log with the lives of some intents.
type history struct {
	log     *embedded.Log
	intents handler.Handler[intent.State, intent.Command, intent.Event]
}

func newHistory(t testing.TB) *history {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return &history{db.Log(), handler.Handler[intent.State, intent.Command, intent.Event]{Store: db.Log(), Codec: intent.Codec()}}
}

var epoch = time.Unix(1_800_000_000, 0).UTC()

func hashOf(n int) chain.Hash { return chain.Keccak(fmt.Append(nil, "attempt ", n)) }

func blockAt(n uint64, fork string) chain.Block {
	return chain.Block{
		Number: n, Hash: chain.Keccak(fmt.Append(nil, fork, n)), Parent: chain.Keccak(fmt.Append(nil, fork, n-1)),
		Time: uint64(epoch.Unix()) + n,
	}
}

// secret is a part of a webhook's URL, and of a call's data.
const secret = "hush-hush"

// asked is the n-th request: from one of three clients, on one of two chains, every second one
// for a pool.
func asked(n int) intent.Request {
	r := intent.Request{
		Client: []string{"", "payroll", "shop"}[n%3], Key: fmt.Sprint("wish-", n), Chain: chain.ID(1 + n%2),
		Calls:    []intent.Call{{To: &chain.Address{9}, Value: intent.NewAmount(uint64(n)), Data: intent.Data(secret)}},
		Subject:  fmt.Sprint("subject ", n%4),
		Webhooks: []intent.Webhook{{URL: "https://hooks.example.com/" + secret + "?token=" + secret}},
		Metadata: map[string]string{"invoice": fmt.Sprint(n)}, Gas: intent.Gas{MaxFee: intent.NewAmount(100)},
	}
	if r.From.Signer = (&chain.Address{1, byte(n % 3)}); n%2 == 0 {
		r.From = intent.From{Pool: "hot"}
	}
	return r
}

// command executes commands for the n-th intent, one after the other.
func (h *history) command(t testing.TB, n int, all ...intent.Command) {
	t.Helper()
	h.tell(t, asked(n).ID(), all...)
}

// tell executes commands for an intent, one after the other.
func (h *history) tell(t testing.TB, id chain.IntentID, all ...intent.Command) {
	t.Helper()
	for _, c := range all {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
		check(t, err)
		_, err = h.intents.Handle(t.Context(), intent.Stream(id), c, o)
		check(t, err)
	}
}

func create(n int) intent.Create { return intent.Create{Request: asked(n), At: epoch} }

func assign(n, assignment int) intent.Assign {
	return intent.Assign{
		Assignment: assignment, Place: intent.Place{Signer: chain.Address{1, byte(n % 3)}, Nonce: uint64(10*n + assignment)}, Token: 1, At: epoch,
	}
}

func attempt(assignment, hash int, kind intent.AttemptKind) intent.Attempt {
	return intent.Attempt{Assignment: assignment, Kind: kind, Hash: hashOf(hash), At: epoch}
}

func seen(hash int, fork string, status uint64, settled bool) intent.Announce {
	list := []chain.Block{blockAt(7, fork), blockAt(8, fork)}
	return intent.Announce{Hash: hashOf(hash), Receipt: chain.Receipt{Block: list[0], Status: status}, Confirmations: list, Settled: settled, At: epoch}
}

// live records one of several lives for the n-th intent.
func (h *history) live(t testing.TB, n int) {
	t.Helper()
	h.command(t, n, create(n))
	first, bump := 10*n, 10*n+1
	rival := intent.Requeue{Assignment: 1, Evidence: intent.Evidence{Kind: intent.Rival, Block: blockAt(9, "main")}, At: epoch}
	lives := [][]intent.Command{
		{},
		{assign(n, 1)},
		{assign(n, 1), attempt(1, first, intent.First), seen(first, "main", 1, false)},
		{assign(n, 1), attempt(1, first, intent.First), attempt(1, bump, intent.Bump), seen(bump, "main", 1, true)},
		{assign(n, 1), attempt(1, first, intent.First), seen(first, "main", 1, true), seen(first, "fork", 0, true)},
		{intent.Cancel{Detail: "wrong", At: epoch}},
		{assign(n, 1), attempt(1, first, intent.First), rival, assign(n, 2), attempt(2, bump, intent.First)},
		{assign(n, 1), attempt(1, first, intent.First), intent.SpeedUp{Fee: intent.NewAmount(50), At: epoch}, intent.Cancel{At: epoch}, attempt(1, bump, intent.NoOp), seen(bump, "main", 1, true)},
	}
	h.command(t, n, lives[n%len(lives)]...)
}

func (h *history) projector(db *sql.DB) *projector.Projector {
	return &projector.Projector{
		Name: intents.Name, DB: db, Log: h.log, Filter: intents.Filter(), Fold: intents.Projection{Codec: intent.Codec()}.Fold,
	}
}

// project runs a projector until it has reached the head of the log.
func (h *history) project(t *testing.T, db *sql.DB) {
	t.Helper()
	head, err := h.log.Head(t.Context())
	check(t, err)
	run(t, h.projector(db), head)
}

// run runs a projector up to a position.
func run(t *testing.T, p *projector.Projector, head eventlog.Position) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p.Moved = func(at eventlog.Position, _ bool) {
		if at >= head {
			stop()
		}
	}
	if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// dump is the tables as text, as exported.
func dump(t *testing.T, db *sql.DB) string { return dumpOf(t, db, intents.Model(intent.Codec())) }

func dumpOf(t *testing.T, db *sql.DB, model projections.Model) string {
	t.Helper()
	var all strings.Builder
	for _, table := range model.Tables {
		var failed error
		for _, row := range table.Rows(t.Context(), db, "", &failed) {
			fmt.Fprintf(&all, "%s\n", row)
		}
		check(t, failed)
	}
	return all.String()
}

// few is a log that returns a few events per read.
type few struct {
	*embedded.Log
	most int
}

func (f few) ReadAll(ctx context.Context, after eventlog.Position, filter eventlog.Filter, _ int) iter.Seq2[eventlog.Batch, error] {
	return f.Log.ReadAll(ctx, after, filter, f.most)
}
