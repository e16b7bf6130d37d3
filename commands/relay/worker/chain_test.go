package worker

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
	"github.com/tempo-watchtower/watchtower/proof/promises/lanes"
	"github.com/tempo-watchtower/watchtower/proof/promises/safeguards"
)

// block is a step of the rest of the world: the chain mines a block, one second after the
// last, from the transactions that delivery has sent; delivery records the results.
func (w *world) block() {
	w.t.Helper()
	if w.signer != nil && !w.hold {
		w.send()
	}
	w.clock.pass(time.Second)
	_, err := w.chain.Mine()
	must(w.t, err)
	if w.signer != nil {
		w.watch()
		w.feed()
	}
}

// folded are the transactions in the log up to a position, in the order of acceptance. Each look
// reads only the events since the one before: a test looks after every block.
type folded struct {
	at      eventlog.Position
	order   []eventlog.Stream
	results map[eventlog.Stream]handler.Result[tx.State]
}

// transactions folds the events of transactions that were appended since the last call.
func (w *world) transactions() *folded {
	w.t.Helper()
	f := &w.folded
	if f.results == nil {
		f.results = map[eventlog.Stream]handler.Result[tx.State]{}
	}
	codec := tx.Codec()
	for batch, err := range w.db.Log().ReadAll(w.t.Context(), f.at, eventlog.Filter{Streams: []string{tx.StreamPrefix}}, 1000) {
		must(w.t, err)
		for _, e := range batch.Events {
			fact, err := codec.Decode(e.Name, e.Data)
			must(w.t, err)
			r := f.results[e.Stream]
			if r.Version == 0 {
				f.order = append(f.order, e.Stream)
			}
			r.State, r.Version, r.Link = r.State.Evolve(fact), e.Version, e.Linked()
			f.results[e.Stream] = r
		}
		f.at = batch.Next
	}
	return f
}

// accepted returns the transactions that delivery has accepted, in the order of the log.
func (w *world) accepted() (all []tx.State) {
	w.t.Helper()
	f := w.transactions()
	for _, stream := range f.order {
		all = append(all, f.results[stream].State)
	}
	return all
}

// send hands open transactions to the node, lower nonces first.
func (w *world) send() {
	w.t.Helper()
	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	must(w.t, err)
	vault := commands.Vault{Rows: w.db.Payloads(), Master: master, Random: rand.Reader}
	open := slices.DeleteFunc(w.accepted(), func(s tx.State) bool { return !s.Sendable() })
	slices.SortStableFunc(open, func(a, b tx.State) int { return int(a.Accepted.Nonce) - int(b.Accepted.Nonce) })
	for _, s := range open {
		raw, err := vault.Bytes(w.t.Context(), payload.Ref{Chain: moderato, Hash: s.Accepted.Hash})
		must(w.t, err)
		w.hand(raw)
	}
}

// hand sends bytes to the node.
func (w *world) hand(raw []byte) { w.call("eth_sendRawTransaction", fmt.Sprintf("0x%x", raw)) }

// call calls a method of the node and returns its answer.
func (w *world) call(method string, params ...any) string {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	must(w.t, err)
	answer := httptest.NewRecorder()
	w.node.ServeHTTP(answer, httptest.NewRequest("POST", "/", bytes.NewReader(body)))
	return answer.Body.String()
}

// watch records what delivery's watcher would.
func (w *world) watch() {
	w.t.Helper()
	head, final := w.chain.Head(), w.chain.Final()
	next := w.chain.Nonce(w.lane)
	for _, s := range w.accepted() {
		hash := s.Accepted.Hash
		receipt, mined := w.chain.Receipt(hash)
		if at, ok := w.chain.Canonical(s.Block.Number); s.Verdict != tx.StatusAbsent && !s.Sealed && (!ok || at.Hash != s.Block.Hash) {
			now := at
			if !ok {
				now = head
			}
			w.deliver(hash, tx.LoseBlock{Was: s.Block, Now: now, At: w.clock.now()})
		}
		switch {
		case mined:
			w.deliver(hash, tx.SeeReceipt{Receipt: receipt, At: w.clock.now()})
		case next > s.Accepted.Nonce && (s.Verdict == tx.StatusAbsent || s.Verdict == tx.StatusExecuted):
			w.deliver(hash, tx.SeeNonce{Block: head, Current: next, At: w.clock.now()})
		}
		w.deliver(hash, tx.Finalize{Final: final, At: w.clock.now()})
	}
}

func (w *world) deliver(hash chain.Hash, c tx.Command) {
	w.t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	must(w.t, err)
	stream := tx.Stream(moderato, hash)
	known := w.transactions().results[stream]
	_, err = commands.Transactions{Store: w.db.Log(), Codec: tx.Codec(), Random: rand.Reader}.HandleFrom(w.t.Context(), stream, known, c, o)
	if err != nil && !commands.IsRefusal(err) {
		w.t.Fatal(err)
	}
}

// refuse records that every endpoint has refused a transaction for good.
func (w *world) refuse(hash chain.Hash) {
	w.t.Helper()
	w.deliver(hash, tx.Report{Attempt: 1, Everyone: true, At: w.clock.now(), Answers: []tx.Answer{
		{Endpoint: "a", Class: tx.Permanent, Cause: "intrinsic-gas", Message: "intrinsic gas too low"},
	}})
}

// bytesOf returns the bytes of a transaction.
func (w *world) bytesOf(hash chain.Hash) []byte {
	w.t.Helper()
	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	must(w.t, err)
	raw, err := commands.Vault{Rows: w.db.Payloads(), Master: master}.Bytes(w.t.Context(), payload.Ref{Chain: moderato, Hash: hash})
	must(w.t, err)
	return raw
}

// rival returns a transaction of the lane's signer that the relay has not made.
func (w *world) rival(nonce uint64) []byte {
	w.t.Helper()
	to := chain.Address{0xdd}
	u := chain.Unsigned{
		Type: tempo.Type, Chain: moderato, NonceKey: w.lane.Key, Nonce: nonce, Gas: 60_000,
		MaxFee: uint256.NewInt(5000), MaxPriorityFee: uint256.NewInt(5000), Calls: []chain.Call{{To: &to}},
	}
	toSign, err := tempo.Payload(u)
	must(w.t, err)
	signature, err := w.signer.Sign(w.t.Context(), toSign)
	must(w.t, err)
	raw, err := tempo.Encode(u, signature, nil)
	must(w.t, err)
	return raw
}

func (w *world) intent(id chain.IntentID) intent.State {
	w.t.Helper()
	r, err := Intents{Store: w.db.Log(), Codec: intent.Codec(), Random: rand.Reader}.Load(w.t.Context(), intent.Stream(id))
	must(w.t, err)
	return r.State
}

func (w *world) state() lane.State {
	w.t.Helper()
	r, err := Lanes{Store: w.db.Log(), Codec: lane.Codec(), Random: rand.Reader}.Load(w.t.Context(), lane.Stream(w.lane))
	must(w.t, err)
	return r.State
}

// until runs an actor and the world until a condition holds.
func (w *world) until(a *actor, what string, true func() bool) {
	w.t.Helper()
	for range 60 {
		if err := w.turns(a, 1); err != nil {
			w.t.Fatalf("%s: %v", what, err)
		}
		if true() {
			return
		}
		w.block()
	}
	w.t.Fatalf("in vain: %s", what)
}

// ended reports whether all intents have ended with a status, and the lane is empty.
func (w *world) ended(status intent.Status, ids ...chain.IntentID) func() bool {
	return func() bool {
		return w.state().Open() == 0 && !slices.ContainsFunc(ids, func(id chain.IntentID) bool { return w.intent(id).Status() != status })
	}
}

// judge checks the whole history against the promises.
func (w *world) judge() {
	w.t.Helper()
	nonces, wishes := lanes.New(lanes.Settings{Hole: w.hole}), intents.New()
	kept := safeguards.New(safeguards.Settings{Grace: time.Second, Gas: fee.GasMin})
	var found []promises.Violation
	for batch, err := range w.db.Log().ReadAll(w.t.Context(), 0, eventlog.Filter{}, 1000) {
		must(w.t, err)
		for _, r := range batch.Events {
			found = slices.Concat(found, nonces.Event(r), wishes.Event(r), kept.Event(r))
		}
	}
	found = append(found, nonces.Finish(w.clock.now())...)
	found = append(found, wishes.Finish(func(chain.ID) promises.Chain { return truth{w.chain} }, true)...)
	for _, v := range found {
		w.t.Error(v)
	}
	w.executedOnce()
	w.squared()
}

// executedOnce checks P10 on the chain: each call of an intent was made once.
func (w *world) executedOnce() {
	w.t.Helper()
	times := map[string]int{}
	raws := map[chain.Hash][]byte{}
	for _, d := range w.chain.Received() {
		raws[d.Hash] = d.Raw
	}
	for hash := range w.chain.Executed() {
		if _, in := w.chain.Receipt(hash); !in {
			continue
		}
		if s, err := tempo.Decode(raws[hash]); err == nil && len(s.Calls[0].Input) > 0 {
			times[string(s.Calls[0].Input)]++
		}
	}
	for call, n := range times {
		if n > 1 {
			w.t.Errorf("call %x was executed %d times", call, n)
		}
	}
}

// truth is the chain as the judges need it.
type truth struct{ of *chaintest.Chain }

func (c truth) At(number uint64) (chain.Block, bool)          { return c.of.Canonical(number) }
func (c truth) Receipt(hash chain.Hash) (chain.Receipt, bool) { return c.of.Receipt(hash) }
func (c truth) Next(s chain.Sequence) (uint64, bool)          { return c.of.Nonce(s), true }
func (c truth) Final(b chain.Block) bool                      { return b.Number <= c.of.Final().Number }
func (c truth) Left(hash chain.Hash) bool                     { return false }
func (c truth) Executed() iter.Seq2[chain.Hash, chain.Receipt] {
	return func(func(chain.Hash, chain.Receipt) bool) {}
}
