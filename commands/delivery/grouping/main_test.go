package grouping_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	id    = chain.ID(42431)
	epoch = 1_800_000_000
)

var (
	alice, mallory = chain.Address{0xa1}, chain.Address{0x66}
	// explicit is an NKG1 key, plain is not.
	explicit = chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 1, 2, 31: 7}
	plain    = chain.NonceKey{31: 7}
)

// world is a chain, one of its nodes, and the log of a service.
type world struct {
	t            *testing.T
	chain        *chaintest.Chain
	node         *chaintest.Node
	reader       *rpc.Reader
	db           *embedded.DB
	submit       *commands.Submit
	transactions commands.Transactions
	groups       commands.Groups
	nonce        uint64
}

func now() time.Time { return time.Unix(epoch, 0).UTC() }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	w.db, err = embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, w.db.Close()) })
	w.chain = chaintest.New(chaintest.Options{Chain: id, Decode: chaintest.DecodePlain, Now: now})
	t.Cleanup(w.chain.Close)
	w.node = w.chain.Node("a")
	server := httptest.NewServer(w.node)
	t.Cleanup(server.Close)
	pool, err := rpc.Open(t.Context(), rpc.Config{
		Chain: id, Endpoints: []rpc.Endpoint{{Name: "a", URL: server.URL}}, Fanout: 1, Confirmations: 1,
		SendTimeout: time.Minute, CallTimeout: time.Minute, Poll: time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	t.Cleanup(pool.Close)
	w.reader = pool.Reader()
	master, err := payload.NewMaster(bytes.Repeat([]byte{7}, payload.KeyBytes))
	check(t, err)
	w.transactions = commands.Transactions{Store: w.db.Log(), Codec: tx.Codec(), Random: rand.Reader}
	w.groups = commands.Groups{Store: w.db.Log(), Codec: group.Codec(), Random: rand.Reader}
	w.submit = &commands.Submit{
		Transactions: w.transactions, Vault: commands.Vault{Rows: w.db.Payloads(), Master: master, Random: rand.Reader},
		Decoders: map[chain.ID]func([]byte) (chain.Signed, error){id: chaintest.DecodePlain},
		Grouping: commands.GroupExplicit, Slots: make(chan struct{}, 4), Now: now,
	}
	return w
}

// accept submits a transaction of alice's with the next nonce.
func (w *world) accept(change ...func(*chain.Signed)) chain.Hash {
	w.t.Helper()
	return w.acceptFrom("", change...)
}

// acceptFrom is accept for a client.
func (w *world) acceptFrom(client string, change ...func(*chain.Signed)) chain.Hash {
	w.t.Helper()
	s := chain.Signed{
		Chain: id, Type: 0x76, Sender: alice, Signature: chain.Secp256k1, NonceKey: explicit, Nonce: w.nonce, Gas: 50_000,
		Window: chain.Window{After: epoch + w.nonce},
	}
	w.nonce++
	for _, c := range change {
		c(&s)
	}
	raw := chaintest.EncodePlain(s)
	answers, err := w.submit.Batch(w.t.Context(), id, [][]byte{raw}, commands.From(client), eventlog.Meta{Correlation: eventlog.ID{1, byte(w.nonce)}, Actor: "test"})
	check(w.t, err)
	check(w.t, answers[0].Err)
	return chain.Keccak(raw)
}

// by makes a transaction signed by an access key.
func by(key chain.Address, kind chain.SignatureKind) func(*chain.Signed) {
	return func(s *chain.Signed) { s.Signature, s.AccessKey, s.AccessKind = chain.Keychain, &key, kind }
}

func (w *world) grouper() *grouping.Grouper {
	return &grouping.Grouper{
		Store: w.db.Log(), Checkpoints: w.db.Work(), Transactions: w.transactions, Groups: w.groups,
		Now: now, Log: slog.New(slog.DiscardHandler),
	}
}

// group runs a grouper until it has read the log up to its head.
func (w *world) group(g *grouping.Grouper) {
	w.t.Helper()
	head, err := w.db.Log().Head(w.t.Context())
	check(w.t, err)
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	g.Moved = func(at eventlog.Position) {
		if at >= head {
			stop()
		}
	}
	if err := g.Run(ctx); !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
}

func (w *world) state(hash chain.Hash) tx.State {
	w.t.Helper()
	r, err := w.transactions.Load(w.t.Context(), tx.Stream(id, hash))
	check(w.t, err)
	return r.State
}

func (w *world) members(key chain.NonceKey) (hashes []chain.Hash) {
	w.t.Helper()
	r, err := w.groups.Load(w.t.Context(), group.ID{Chain: id, Sender: alice, Group: key.Group()}.Stream())
	check(w.t, err)
	for _, m := range r.State.List() {
		hashes = append(hashes, m.Hash)
	}
	return hashes
}

func (w *world) command(hash chain.Hash, c tx.Command) {
	w.t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	check(w.t, err)
	_, err = w.transactions.Handle(w.t.Context(), tx.Stream(id, hash), c, o)
	check(w.t, err)
}

// Claims lists the claims in the log, in pages of limit.
func (w *world) Claims(ctx context.Context, _ chain.ID, after eventlog.Position, limit int) (claims []tx.Claim, err error) {
	for batch, err := range w.db.Log().ReadAll(ctx, after, eventlog.Filter{Names: []string{"tx.accepted."}}, 100) {
		if err != nil {
			return nil, err
		}
		for _, r := range batch.Events {
			_, hash, err := tx.ParseStream(r.Stream)
			if err != nil {
				return nil, err
			}
			loaded, err := w.transactions.Load(ctx, r.Stream)
			if err != nil {
				return nil, err
			}
			if a := loaded.State.Accepted; loaded.State.Claimed() && len(claims) < limit {
				claims = append(claims, tx.Claim{Chain: id, Hash: hash, Key: chain.AccessKey{Account: a.Sender, Key: *a.AccessKey}, Position: r.Position})
			}
		}
	}
	return claims, nil
}

func (*world) confirmed() eventlog.Filter {
	return eventlog.Filter{Names: []string{"tx.group_confirmed."}}
}
