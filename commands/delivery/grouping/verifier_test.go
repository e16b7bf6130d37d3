package grouping_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

const poll = time.Second

// verifier returns a verifier whose clock a test moves.
func (w *world) verifier(since *time.Duration) *grouping.Verifier {
	return &grouping.Verifier{
		Chain: id, Claims: w, Keychain: w.keychain, Transactions: w.transactions, Vault: w.submit.Vault,
		Decode: chaintest.DecodePlain, Poll: poll, Now: func() time.Time { return now().Add(*since) },
		Log: slog.New(slog.DiscardHandler),
	}
}

func (w *world) keychain(client string) grouping.Keychain { return w.reader.Repeating(client) }

func (w *world) grant(key chain.Address, g chain.Grant) {
	w.chain.SetGrant(chain.AccessKey{Account: alice, Key: key}, g)
}

var forEver = chain.Grant{Known: true, Kind: chain.P256, Expires: 1<<64 - 1}

// A transaction signed in alice's name by a stranger's key is in no group of hers.
func TestOnlyConfirmedKeysJoin(t *testing.T) {
	revoked, expired := forEver, forEver
	revoked.Revoked, expired.Expires = true, epoch
	for _, c := range []struct {
		name  string
		grant chain.Grant
		kind  chain.SignatureKind
		doubt string
	}{
		{"granted", forEver, chain.P256, ""},
		{"a stranger's key", chain.Grant{}, chain.P256, "not authorized"},
		{"revoked", revoked, chain.P256, "revoked"},
		{"expired", expired, chain.P256, "expired"},
		{"of another kind", forEver, chain.WebAuthn, "webauthn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			hash := w.accept(by(mallory, c.kind))
			w.grant(mallory, c.grant)
			w.group(w.grouper())
			if s := w.state(hash); !s.GroupPending() || s.Group() != nil || len(w.members(explicit)) != 0 {
				t.Fatalf("before the chain was asked: pending %v, members %v", s.GroupPending(), w.members(explicit))
			}
			check(t, w.verifier(new(time.Duration)).Steps()(t.Context()))
			w.group(w.grouper())
			s, joined := w.state(hash), len(w.members(explicit)) == 1
			if joined != (c.doubt == "") || s.GroupPending() == joined || !strings.Contains(s.Doubt, c.doubt) || (s.Doubt == "") != joined {
				t.Errorf("joined %v, pending %v, doubt %q; want %q", joined, s.GroupPending(), s.Doubt, c.doubt)
			}
		})
	}
}

// The authorization may come later: the chain is asked again, with growing pauses.
func TestAskedAgain(t *testing.T) {
	w := newWorld(t)
	hash := w.accept(by(mallory, chain.P256))
	var since time.Duration
	step := w.verifier(&since).Steps()
	asked := func() int { return w.node.Calls()["eth_call"] }
	check(t, step(t.Context()))
	check(t, step(t.Context())) // too soon
	if asked() != 1 {
		t.Fatalf("asked %d times", asked())
	}
	for range 3600 { // an hour, second by second
		since += poll
		check(t, step(t.Context()))
	}
	if n := asked(); n < 12 || n > 30 {
		t.Errorf("asked %d times in an hour", n)
	}
	w.grant(mallory, forEver)
	for range 301 {
		since += poll
		check(t, step(t.Context()))
	}
	w.group(w.grouper())
	if got := w.members(explicit); len(got) != 1 || got[0] != hash {
		t.Errorf("members %v within five minutes of the authorization", got)
	}
	if w.state(hash).Doubts != 1 {
		t.Errorf("%d doubts recorded of one kind", w.state(hash).Doubts)
	}
}

// Many claims by one key cost one question.
func TestOneQuestionForAKey(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.accept(by(mallory, chain.P256))
	}
	w.grant(mallory, forEver)
	check(t, w.verifier(new(time.Duration)).Steps()(t.Context()))
	w.group(w.grouper())
	if got := w.members(explicit); len(got) != 20 || w.node.Calls()["eth_call"] != 1 {
		t.Errorf("%d members, %d questions", len(got), w.node.Calls()["eth_call"])
	}
}

// An executed transaction is confirmed, even if its key was revoked since. Canceled
// transactions and those ended otherwise are not asked about.
func TestEndedClaims(t *testing.T) {
	w := newWorld(t)
	executed, canceled, expired := w.accept(by(mallory, chain.P256)), w.accept(by(mallory, chain.P256)), w.accept(by(mallory, chain.P256), func(s *chain.Signed) { s.Window.Before = epoch + 100 })
	block := chain.Block{Number: 3, Hash: chain.Hash{3}, Time: epoch + 100}
	w.command(executed, tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}, At: now()})
	w.command(canceled, tx.Cancel{Reason: "owner", At: now()})
	w.command(expired, tx.SeeTime{Block: block, At: now()})
	w.command(expired, tx.Finalize{Final: block, At: now()})
	check(t, w.verifier(new(time.Duration)).Steps()(t.Context()))
	w.group(w.grouper())
	if got := w.members(explicit); len(got) != 1 || got[0] != executed {
		t.Errorf("members %v", got)
	}
	for _, hash := range []chain.Hash{canceled, expired} {
		if s := w.state(hash); s.Doubts != 0 || !s.GroupPending() {
			t.Errorf("%s: %d doubts, pending %v", s.Status, s.Doubts, s.GroupPending())
		}
	}
}

// A claim whose bytes cannot be read does not stop the others; unreachable nodes only delay
// all.
func TestTrouble(t *testing.T) {
	w := newWorld(t)
	broken, fine := w.accept(by(mallory, chain.P256)), w.accept(by(alice, chain.P256))
	w.grant(mallory, forEver)
	w.grant(alice, forEver)
	var since time.Duration
	v := w.verifier(&since)
	v.Decode = func(raw []byte) (chain.Signed, error) {
		s, err := chaintest.DecodePlain(raw)
		if s.Hash == broken {
			err = fmt.Errorf("no such type")
		}
		return s, err
	}
	v.Keychain = func(string) grouping.Keychain { return away{w.reader} }
	step := v.Steps()
	if err := step(t.Context()); err == nil {
		t.Error("no node, and no trouble")
	}
	v.Keychain = w.keychain
	since += poll
	if err := step(t.Context()); err == nil || !strings.Contains(err.Error(), broken.String()) {
		t.Errorf("unreadable bytes: %v", err)
	}
	w.group(w.grouper())
	if got := w.members(explicit); len(got) != 1 || got[0] != fine {
		t.Errorf("members %v", got)
	}
}

// away is a node that does not answer.
type away struct{ *rpc.Reader }

func (away) Head(context.Context) (chain.Block, error) {
	return chain.Block{}, fmt.Errorf("connection refused")
}

// All claims get their turn, however many there are.
func TestManyClaims(t *testing.T) {
	w := newWorld(t)
	for range grouping.ClaimsMax + 10 {
		w.accept(by(mallory, chain.P256))
	}
	w.grant(mallory, forEver)
	w.accept(by(alice, chain.P256))
	step := w.verifier(new(time.Duration)).Steps()
	check(t, step(t.Context()))
	check(t, step(t.Context()))
	w.group(w.grouper())
	if got := w.members(explicit); len(got) != grouping.ClaimsMax+10 {
		t.Errorf("%d members", len(got))
	}
}

// However many claims one client makes, another client's claim is asked about in the next
// step, and again as soon as its pause is over.
func TestManyClaimsKeepNoOthersWaiting(t *testing.T) {
	w := newWorld(t)
	forge := func() {
		for range grouping.ClaimsMax {
			w.acceptFrom("mallory", by(mallory, chain.P256))
		}
	}
	forge()
	granted, later := chain.Address{0xcc}, chain.Address{0xcd}
	w.grant(granted, forEver)
	first, second := w.acceptFrom("alice", by(granted, chain.P256)), w.acceptFrom("alice", by(later, chain.P256))
	var since time.Duration
	step := w.verifier(&since).Steps()
	check(t, step(t.Context()))
	if w.state(first).GroupPending() || w.state(second).Doubt == "" {
		t.Fatal("not asked about in the first step")
	}
	forge()
	w.grant(later, forEver)
	since += poll
	check(t, step(t.Context()))
	if w.state(second).GroupPending() {
		t.Error("not asked about again when the pause was over")
	}
}

// Clients take turns, a client's oldest claim is first, and no claim is taken before it is
// due.
func TestWaitingInTurn(t *testing.T) {
	at := time.Unix(epoch, 0)
	order := grouping.TakeInTurn(at, 3, map[string][]time.Duration{
		"a": {0, -time.Second, time.Second, 0}, "b": {0}, "c": {time.Minute},
	})
	if want := "a1 a0 b0|a3|"; order != want {
		t.Errorf("%s, want %s", order, want)
	}
}

// The loop ends with its context.
func TestRunEnds(t *testing.T) {
	w := newWorld(t)
	hash := w.accept(by(mallory, chain.P256))
	w.grant(mallory, forEver)
	ctx, stop := context.WithCancel(t.Context())
	v := w.verifier(new(time.Duration))
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	for batch, err := range w.db.Log().Subscribe(t.Context(), 0, w.confirmed(), 1) {
		check(t, err)
		if len(batch.Events) > 0 {
			break
		}
	}
	stop()
	if err := <-ended; err == nil || w.state(hash).GroupPending() {
		t.Errorf("ended with %v", err)
	}
}
