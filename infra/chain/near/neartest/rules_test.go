package neartest

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// TestGapsLandAndKill sends a nonce far ahead: it lands, and the lower one never does.
func TestGapsLandAndKill(t *testing.T) {
	w := newWorld(t, Options{})
	low, high := w.transfer(w.next(0)), w.transfer(w.next(1000))
	w.want(w.send(high, "NONE"), `"NONE"`)
	w.produce(12)
	if w.runs(high) != 1 {
		t.Fatal("the higher nonce did not land")
	}
	w.want(w.send(low, "NONE"), `"NONE"`) // whatever parses is accepted
	w.produce(12)
	if w.runs(low) != 0 {
		t.Fatal("a lower nonce landed")
	}
	w.want(w.call("tx", map[string]any{"signed_tx_base64": base64Of(low), "wait_until": "NONE"}), "InvalidNonce")
	w.want(w.send(high, "NONE"), `"NONE"`)
	w.produce(12)
	if w.runs(high) != 1 {
		t.Fatal("the same bytes ran twice")
	}
}

// TestOutcome follows a transaction from its inclusion to its finality.
func TestOutcome(t *testing.T) {
	w := newWorld(t, Options{})
	s := w.transfer(w.next(0))
	w.want(w.tx(s), "UNKNOWN_TRANSACTION")
	w.send(s, "NONE")
	for w.runs(s) == 0 {
		w.Produce()
	}
	w.want(w.tx(s), `"final_execution_status":"INCLUDED"`)
	w.Produce()
	w.want(w.tx(s), `"final_execution_status":"EXECUTED_OPTIMISTIC"`)
	w.produce(3)
	w.want(w.tx(s), `"final_execution_status":"FINAL"`)
	w.want(w.tx(s), `"status":{"SuccessValue":""}`)
}

// TestFailingReceipts: a receipt may fail although the status is a success.
func TestFailingReceipts(t *testing.T) {
	w := newWorld(t, Options{})
	w.SetContract(w.bob.account)
	w.SetFailing(w.bob.account, "breaks", "Smart contract panicked: no")
	w.SetPromise(w.bob.account, "sends", "Smart contract panicked: later")
	call := func(method string, more uint64) near.Signed {
		return w.alice.sign(near.Transaction{
			Nonce: near.Nonce{Value: w.next(more)}, Receiver: w.bob.account, Block: w.Chain.Final().Hash,
			Actions: []near.Action{near.FunctionCall{Method: method, Gas: 30_000_000_000_000}},
		})
	}
	breaks, sends, fine := call("breaks", 0), call("sends", 1), call("works", 2)
	for _, s := range []near.Signed{breaks, sends, fine} {
		w.send(s, "NONE")
		w.produce(12)
	}
	w.want(w.tx(breaks), `"status":{"Failure":{"ActionError":{"index":0`)
	w.want(w.tx(fine), `"status":{"SuccessValue":""}`)
	shown := w.tx(sends)
	w.want(shown, `"status":{"SuccessValue":""},"transaction"`)
	w.want(shown, "no")
	w.want(shown, "Smart contract panicked: later")
	if nonce, _ := w.Nonce(w.alice.account, w.alice.key); nonce != fine.Nonce.Value {
		t.Errorf("the nonce is %d after failing receipts", nonce)
	}
}

// TestExpiry includes at the last height, and not one later.
func TestExpiry(t *testing.T) {
	w := newWorld(t, Options{Validity: 10, Producers: 1})
	last, late := w.transfer(w.next(0)), w.transfer(w.next(1))
	base := w.Chain.Final().Height
	for w.Head().Height < base+10 {
		w.Produce()
	}
	w.want(w.call("tx", map[string]any{"signed_tx_base64": base64Of(last), "wait_until": "NONE"}), "UNKNOWN_TRANSACTION")
	w.send(last, "NONE")
	w.Produce() // its parent is at the last height
	if w.runs(last) != 1 {
		t.Error("not included although its parent is at the last height")
	}
	w.want(w.call("tx", map[string]any{"signed_tx_base64": base64Of(late), "wait_until": "NONE"}), `"Expired"`)
	w.send(late, "NONE")
	w.produce(3)
	if w.runs(late) != 0 {
		t.Error("included after the last height")
	}
}

// TestUnknownBase: a node that lags calls a new block hash expired.
func TestUnknownBase(t *testing.T) {
	w := newWorld(t, Options{})
	w.produce(10)
	s := w.transfer(w.next(0))
	w.node.Set(Faults{Lag: 8})
	w.want(w.call("tx", map[string]any{"signed_tx_base64": base64Of(s), "wait_until": "NONE"}), `"Expired"`)
	w.node.Set(Faults{})
	w.want(w.call("tx", map[string]any{"signed_tx_base64": base64Of(s), "wait_until": "NONE"}), "UNKNOWN_TRANSACTION")
}

// TestNonceTooLarge: no node says so, and no producer takes it.
func TestNonceTooLarge(t *testing.T) {
	w := newWorld(t, Options{})
	s := w.transfer((w.Head().Height + 1000) * noncesPerBlock)
	w.want(w.call("tx", map[string]any{"signed_tx_base64": base64Of(s), "wait_until": "NONE"}), "UNKNOWN_TRANSACTION")
	w.send(s, "NONE")
	w.produce(12)
	if w.runs(s) != 0 {
		t.Error("it landed")
	}
}

// TestStrict: a strict nonce waits for the one before it, and a node refuses the gap.
func TestStrict(t *testing.T) {
	w := newWorld(t, Options{Producers: 1})
	strict := func(nonce uint64) near.Signed {
		s := w.transfer(nonce)
		s.Version, s.Strict = near.V1, true
		return w.alice.sign(s.Transaction)
	}
	first, second := strict(w.next(0)), strict(w.next(1))
	w.want(w.send(second, "INCLUDED"), "InvalidNonce")
	w.node.Set(Faults{Untracked: true}) // it forwards without validating
	w.send(second, "NONE")
	w.node.Set(Faults{})
	w.produce(3)
	w.send(first, "NONE")
	w.produce(6)
	if w.runs(first) != 1 || w.runs(second) != 1 {
		t.Errorf("the first ran %d times, the second %d", w.runs(first), w.runs(second))
	}
}

// TestReadded: a key that is added again starts above every nonce that it ever used.
func TestReadded(t *testing.T) {
	w := newWorld(t, Options{})
	used, _ := w.Nonce(w.alice.account, w.alice.key)
	w.RemoveKey(w.alice.account, w.alice.key)
	s := w.transfer(used + 5)
	w.want(w.call("tx", map[string]any{"signed_tx_base64": base64Of(s), "wait_until": "NONE"}), "AccessKeyNotFound")
	w.want(w.call("query", map[string]any{"request_type": "view_access_key", "account_id": s.Signer, "public_key": s.Key.String(), "finality": "optimistic"}), "does not exist while viewing")
	w.want(w.call("EXPERIMENTAL_view_access_key", map[string]any{"account_id": s.Signer, "public_key": s.Key.String(), "finality": "optimistic"}), "UNKNOWN_ACCESS_KEY")
	w.produce(3)
	w.Create(w.alice.account, 100, w.alice.key)
	if again, _ := w.Nonce(w.alice.account, w.alice.key); again <= used+5 {
		t.Errorf("it starts at %d again", again)
	}
}

// TestReorgLosesAndKeeps: a lost block's transaction is known as included without outcome, and lands again only
// if it is sent again.
func TestReorgLosesAndKeeps(t *testing.T) {
	w := newWorld(t, Options{Producers: 1})
	s := w.transfer(w.next(0))
	w.send(s, "NONE")
	w.Produce()
	if w.runs(s) != 1 {
		t.Fatal("it did not land")
	}
	w.Reorg(1, false)
	if w.runs(s) != 0 {
		t.Fatal("it is on the new branch")
	}
	w.want(w.tx(s), `{"final_execution_status":"INCLUDED"}`)
	w.send(s, "NONE")
	w.produce(3)
	if w.runs(s) != 1 {
		t.Errorf("it ran %d times", w.runs(s))
	}
}

// TestIncludedInvalid: an outcome that failed as invalid leaves the nonce, and the same bytes may run later.
func TestIncludedInvalid(t *testing.T) {
	w := newWorld(t, Options{Producers: 1})
	carol := signerOf("carol.near")
	w.Create(carol.account, 0, carol.key)
	nonce, _ := w.Nonce(carol.account, carol.key)
	s := carol.sign(near.Transaction{
		Nonce: near.Nonce{Value: nonce + 1}, Receiver: w.bob.account, Block: w.Chain.Final().Hash,
		Actions: []near.Action{near.Transfer{Deposit: NEAR(1)}},
	})
	w.IncludeInvalid(true)
	w.node.Set(Faults{Untracked: true})
	w.send(s, "NONE")
	w.node.Set(Faults{})
	w.produce(3)
	w.want(w.tx(s), `"status":{"Failure":{"InvalidTxError":{"NotEnoughBalance"`)
	if w.runs(s) != 0 {
		t.Fatal("it used its nonce")
	}
	w.Create(carol.account, 5)
	w.send(s, "NONE")
	w.produce(3)
	if w.runs(s) != 1 {
		t.Errorf("it ran %d times", w.runs(s))
	}
}

// TestChanges names the transaction that moved a nonce.
func TestChanges(t *testing.T) {
	w := newWorld(t, Options{Producers: 1})
	s := w.transfer(w.next(0))
	w.send(s, "NONE")
	height := w.Produce().Height
	keys := []any{map[string]any{"account_id": s.Signer, "public_key": s.Key.String()}}
	ask := map[string]any{"changes_type": "single_access_key_changes", "keys": keys, "block_id": height}
	w.want(w.call("changes", ask), `"tx_hash":"`+near.HashText(s.Hash()))
	w.want(w.call("block_effects", map[string]any{"block_id": height}), "access_key_touched")
	w.node.Set(Faults{NoChanges: true})
	w.want(w.call("changes", ask), `"changes":[]`)
}

// TestSkippedHeights: a height below the head without a block is unknown with status 422.
func TestSkippedHeights(t *testing.T) {
	w := newWorld(t, Options{})
	b := w.Produce(3)
	if a := w.call("block", map[string]any{"block_id": b.Height - 1}); a.status != http.StatusUnprocessableEntity {
		t.Errorf("status %d", a.status)
	}
	if a := w.call("block", map[string]any{"block_id": b.Height + 1}); a.status != http.StatusOK {
		t.Errorf("status %d above the head", a.status)
	}
	if w.Chain.Final().Height == b.Height {
		t.Error("a block on skipped heights is final")
	}
	w.produce(2)
	if final := w.Chain.Final().Height; final != b.Height {
		t.Errorf("final is %d, not %d", final, b.Height)
	}
}

// TestDelegate: the user's nonce moves once however often the delegate is wrapped.
func TestDelegate(t *testing.T) {
	w := newWorld(t, Options{Producers: 1})
	nonce, _ := w.Nonce(w.bob.account, w.bob.key)
	d := near.Delegate{
		Sender: w.bob.account, Receiver: w.alice.account, Actions: []near.Action{near.Transfer{Deposit: *uint256.NewInt(5)}},
		Nonce: near.Nonce{Value: nonce + 1}, MaxHeight: w.Head().Height + 100, Key: w.bob.key,
	}
	hash := d.Hash()
	d.Signature = near.Signature{Type: near.Ed25519, Bytes: ed25519.Sign(w.bob.private, hash[:])}
	wrap := func() near.Signed {
		return w.alice.sign(near.Transaction{Nonce: near.Nonce{Value: w.next(0)}, Receiver: w.bob.account, Block: w.Chain.Final().Hash, Actions: []near.Action{d}})
	}
	first := wrap()
	w.send(first, "NONE")
	w.produce(5)
	w.want(w.tx(first), `"status":{"SuccessValue":""}`)
	second := wrap()
	w.send(second, "NONE")
	w.produce(5)
	w.want(w.tx(second), "DelegateActionInvalidNonce")
	if w.runs(first) != 1 || w.runs(second) != 1 {
		t.Error("an outer nonce was not used")
	}
}

// TestCongestion: a shard that takes no more is told before anything of the account.
func TestCongestion(t *testing.T) {
	w := newWorld(t, Options{})
	s := w.transfer(w.next(0))
	w.SetCongestion(w.Shard(w.bob.account), 0.9)
	w.want(w.send(s, "INCLUDED"), "ShardCongested")
	w.SetCongestion(w.Shard(w.bob.account), 0)
	w.want(w.call("tx", map[string]any{"signed_tx_base64": base64Of(s), "wait_until": "NONE"}), "UNKNOWN_TRANSACTION")
}

// TestRequests: forms of requests that a node refuses.
func TestRequests(t *testing.T) {
	w := newWorld(t, Options{})
	for body, want := range map[string]string{
		`[{"jsonrpc":"2.0","id":1,"method":"status","params":[]}]`:                         "PARSE_ERROR",
		`{"jsonrpc":"2.0","id":1,"method":"nonsense","params":[]}`:                         "METHOD_NOT_FOUND",
		`{"jsonrpc":"2.0","id":1,"method":"send_tx","params":{"signed_tx_base64":"AAAA"}}`: "Failed parsing args: the value could not decoded from borsh due to: Unexpected length",
		`{"jsonrpc":"2.0","id":1,"method":"broadcast_tx_async","params":["AAAA"]}`:         "Failed to decode transaction: Unexpected length",
	} {
		response, err := http.Post(w.server.URL, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var a answer
		err = json.NewDecoder(response.Body).Decode(&a)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(a.cause(), want) {
			t.Errorf("%s: status %d, %s", body, response.StatusCode, a.cause())
		}
	}
}

// TestCutReply: a cut reply says nothing about what the node did.
func TestCutReply(t *testing.T) {
	w := newWorld(t, Options{Producers: 1})
	s := w.transfer(w.next(0))
	w.node.Set(Faults{CutReplies: 1})
	if a := w.send(s, "NONE"); a.status != -1 {
		t.Fatalf("answered with status %d", a.status)
	}
	w.Produce()
	if w.runs(s) != 1 {
		t.Error("the node did not act")
	}
	if got := w.Received(); len(got) == 0 || got[0].Hash != s.Hash() {
		t.Error("not recorded")
	}
}
