package rpc

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestReadsAChain(t *testing.T) {
	c := newChain(t, chaintest.Rules{Finality: 2})
	n := c.Node("a")
	p := open(t, nil, serve(t, n))
	r := p.Reader()
	ctx := t.Context()
	var raws [][]byte
	var hashes []chain.Hash
	for nonce := range uint64(3) {
		raw, hash := plain(alice, key5, nonce)
		raws, hashes = append(raws, raw), append(hashes, hash)
	}
	account, accountHash := plain(alice, chain.NonceKey{}, 0)
	c.Revert(hashes[1], true)
	first := mine(t, c, raws[0])
	second := mine(t, c, raws[1], raws[2], account)
	third := mine(t, c)

	if head, err := r.Head(ctx); err != nil || head != third {
		t.Errorf("head %+v %v", head, err)
	}
	if final, err := r.Final(ctx, third); err != nil || final != first {
		t.Errorf("final %+v %v", final, err)
	}
	want := []chain.Hash{hashes[1], hashes[2], accountHash}
	if b, got, err := r.BlockAt(ctx, 2); err != nil || b != second || !slices.Equal(got, want) {
		t.Errorf("block 2: %+v %v %v", b, got, err)
	}
	if b, got, err := r.BlockByHash(ctx, second.Hash); err != nil || b != second || !slices.Equal(got.Hashes, want) {
		t.Errorf("block by hash: %+v %v %v", b, got, err)
	}
	used := map[chain.Sequence]uint64{
		{Chain: id, Sender: alice, Key: key5}: 3, {Chain: id, Sender: alice}: 1,
	}
	if _, got, err := r.BlockByHash(ctx, second.Hash); err != nil || !maps.Equal(got.Used, used) {
		t.Errorf("the block used %v, %v, want %v", got.Used, err, used)
	}
	if _, _, err := r.BlockAt(ctx, 9); err == nil {
		t.Error("a block that does not exist")
	}
	if _, _, err := r.BlockByHash(ctx, chain.Hash{9}); err == nil {
		t.Error("a hash that does not exist")
	}

	absent := chain.Hash{7}
	for _, asked := range [][]chain.Hash{{}, hashes[1:2], {absent}, {hashes[1], accountHash, absent, hashes[0]}} {
		got, err := r.Receipts(ctx, second, asked)
		want := map[chain.Hash]chain.Receipt{}
		for _, hash := range asked {
			if receipt, ok := c.Receipt(hash); ok && receipt.Block == second {
				want[hash] = receipt
			}
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("receipts of %v: %v %s", asked, err, diff)
		}
	}

	sequences := []chain.Sequence{
		{Chain: id, Sender: alice, Key: key5}, {Chain: id, Sender: alice}, {Chain: id, Sender: bob, Key: key5},
		{Chain: id, Sender: alice, Key: chain.ExpiringKey},
	}
	for _, test := range []struct {
		at   chain.Block
		want []uint64
	}{{first, []uint64{1, 0, 0, 0}}, {second, []uint64{3, 1, 0, 0}}, {third, []uint64{3, 1, 0, 0}}} {
		got, err := r.Nonces(ctx, test.at, sequences)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("nonces at %d: %v %v", test.at.Number, got, err)
		}
	}
	if got, err := r.Nonces(ctx, third, sequences[3:]); err != nil || !slices.Equal(got, []uint64{0}) {
		t.Errorf("nonces of the expiring key: %v %v", got, err)
	}
	if got, err := r.FindReceipt(ctx, hashes[1], chain.Block{}); err != nil || got == nil || got.Block != second || got.Status != 0 {
		t.Errorf("receipt %+v %v", got, err)
	}
	if got, err := r.FindReceipt(ctx, absent, chain.Block{}); err != nil || got != nil {
		t.Errorf("receipt %+v %v", got, err)
	}
}

func TestReadsFewCalls(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	n := c.Node("a")
	p := open(t, nil, serve(t, n))
	r := p.Reader()
	ctx := t.Context()
	var raws [][]byte
	var hashes []chain.Hash
	for i := range 50 {
		raw, hash := plain(chain.Address{byte(i)}, key5, 0)
		raws, hashes = append(raws, raw), append(hashes, hash)
	}
	mine(t, c, raws...)
	before := n.Calls()
	head, err := r.Newest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := r.BlockByHash(ctx, head.Hash); err != nil || len(got.Hashes) != 50 {
		t.Fatal(got, err)
	}
	if got, err := r.Receipts(ctx, head, hashes); err != nil || len(got) != 50 {
		t.Fatal(got, err)
	}
	calls := 0
	for method, count := range n.Calls() {
		calls += count - before[method]
	}
	if calls != 2 {
		t.Errorf("%d calls for a block of 50 hits: %v", calls, n.Calls())
	}
}

func TestReadsNodesThatCannotDoEverything(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	n := c.Node("a")
	n.Set(chaintest.Faults{NoBatch: true, NoBlockReceipts: true, NoBlockHashes: true})
	p := open(t, nil, serve(t, n))
	r := p.Reader()
	raw0, hash0 := plain(alice, key5, 0)
	raw1, hash1 := plain(alice, chain.NonceKey{}, 0)
	b := mine(t, c, raw0, raw1)
	if got, err := r.Receipts(t.Context(), b, []chain.Hash{hash0, hash1}); err != nil || len(got) != 2 {
		t.Errorf("receipts %v %v", got, err)
	}
	sequences := []chain.Sequence{{Chain: id, Sender: alice, Key: key5}, {Chain: id, Sender: alice}}
	if got, err := r.Nonces(t.Context(), b, sequences); err != nil || !slices.Equal(got, []uint64{1, 1}) {
		t.Errorf("nonces %v %v", got, err)
	}
	if err := c.ReorgBelowFinal(1, false); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Nonces(t.Context(), b, sequences); err == nil {
		t.Errorf("nonces %v at a block that is no longer there", got)
	}
	if n.Calls()["eth_getBlockReceipts"] != 1 {
		t.Errorf("asked again for what it has not: %v", n.Calls())
	}
}

func TestFinalByConfirmations(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	p := open(t, func(c *Config) { c.Confirmations = 3 }, serve(t, c.Node("a")))
	r := p.Reader()
	blocks := []chain.Block{c.Head()}
	for range 4 {
		blocks = append(blocks, mine(t, c))
		want := blocks[max(0, len(blocks)-3)]
		if got, err := r.Final(t.Context(), c.Head()); err != nil || got != want {
			t.Errorf("at head %d: final %+v %v", len(blocks)-1, got, err)
		}
	}
}

func TestReaderRefusesContradictions(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	raw, hash := plain(alice, key5, 0)
	b1 := mine(t, c, raw)
	other, _ := plain(alice, key5, 1)
	b2 := mine(t, c, other)
	render := func(number, hash, parent, transaction any) string {
		return fmt.Sprintf(`{"number":"0x%x","hash":"%s","parentHash":"%s","timestamp":"0x1","transactions":["%s"]}`, number, hash, parent, transaction)
	}
	receipt := func(transaction, block chain.Hash, number uint64) string {
		return fmt.Sprintf(`{"transactionHash":"%s","blockHash":"%s","blockNumber":"0x%x","transactionIndex":"0x0","status":"0x1","gasUsed":"0x1"}`,
			transaction, block, number)
	}
	for _, test := range []struct {
		name, method, result string
		read                 func(r *Reader) error
	}{
		{"another block of that hash", "eth_getBlockByHash", render(1, b2.Hash, b1.Hash, hash),
			func(r *Reader) error { _, _, err := r.BlockByHash(t.Context(), b1.Hash); return err }},
		{"another block of that number", "eth_getBlockByNumber", render(2, b2.Hash, b1.Hash, hash),
			func(r *Reader) error { _, _, err := r.BlockAt(t.Context(), 1); return err }},
		{"a head without hash", "eth_getBlockByNumber", `{"number":"0x1"}`,
			func(r *Reader) error { _, err := r.Head(t.Context()); return err }},
		{"transactions in full", "eth_getBlockByNumber", strings.Replace(render(1, b1.Hash, b1.Parent, hash), `"transactions":["`+hash.String()+`"]`, `"transactions":[{}]`, 1),
			func(r *Reader) error { _, err := r.Head(t.Context()); return err }},
		{"a receipt of another transaction", "eth_getTransactionReceipt", receipt(chain.Hash{1}, b1.Hash, 1),
			func(r *Reader) error { _, err := r.Receipts(t.Context(), b1, []chain.Hash{hash}); return err }},
		{"a receipt in another block", "eth_getTransactionReceipt", receipt(hash, b2.Hash, 2),
			func(r *Reader) error { _, err := r.Receipts(t.Context(), b1, []chain.Hash{hash}); return err }},
		{"no receipt of what the block holds", "eth_getTransactionReceipt", `null`,
			func(r *Reader) error { _, err := r.Receipts(t.Context(), b1, []chain.Hash{hash}); return err }},
		{"receipts of another block", "eth_getBlockReceipts", `[` + receipt(hash, b2.Hash, 2) + `]`,
			func(r *Reader) error { _, err := r.Receipts(t.Context(), b1, []chain.Hash{hash, {1}}); return err }},
		{"an incomplete list of receipts", "eth_getBlockReceipts", `[]`,
			func(r *Reader) error { _, err := r.Receipts(t.Context(), b1, []chain.Hash{hash, {1}}); return err }},
		{"receipts of a block it lost", "eth_getBlockReceipts", `null`,
			func(r *Reader) error { _, err := r.Receipts(t.Context(), b1, []chain.Hash{hash, {1}}); return err }},
		{"a nonce of 2^64", "eth_call", `"0x` + strings.Repeat("0", 47) + "1" + strings.Repeat("0", 16) + `"`,
			func(r *Reader) error {
				_, err := r.Nonces(t.Context(), b1, []chain.Sequence{{Chain: id, Sender: alice, Key: key5}})
				return err
			}},
		{"no nonce manager", "eth_call", `"0x"`,
			func(r *Reader) error {
				_, err := r.Nonces(t.Context(), b1, []chain.Sequence{{Chain: id, Sender: alice, Key: key5}})
				return err
			}},
		{"a null nonce", "eth_getTransactionCount", `null`,
			func(r *Reader) error {
				_, err := r.Nonces(t.Context(), b1, []chain.Sequence{{Chain: id, Sender: alice}})
				return err
			}},
		{"a phantom receipt", "eth_getTransactionReceipt", receipt(chain.Hash{8}, b1.Hash, 1),
			func(r *Reader) error { _, err := r.FindReceipt(t.Context(), chain.Hash{8}, chain.Block{}); return err }},
		{"a receipt on another branch", "eth_getTransactionReceipt", receipt(hash, chain.Hash{3}, 1),
			func(r *Reader) error { _, err := r.FindReceipt(t.Context(), hash, chain.Block{}); return err }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &gateway{node: c.Node("a")}
			p := open(t, nil, serve(t, g))
			if err := test.read(p.Reader()); err != nil {
				t.Fatalf("an honest node: %v", err)
			}
			g.replace(t, test.method, `"result":`+test.result)
			lost := (*Unreachable)(nil)
			if err := test.read(p.Reader()); !errors.As(err, &lost) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestFindReceiptNeedsEveryAnswer(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	a, b := c.Node("a"), c.Node("b")
	p := open(t, nil, serve(t, a), serve(t, b))
	r := p.Reader()
	raw, hash := plain(alice, key5, 0)
	mine(t, c, raw)
	a.Set(chaintest.Faults{Lag: 1})
	if got, err := r.FindReceipt(t.Context(), hash, chain.Block{}); got != nil || !errors.Is(err, errAlone) {
		t.Errorf("one has it, the other has not come so far: %+v %v", got, err)
	}
	a.Set(chaintest.Faults{})
	if got, err := r.FindReceipt(t.Context(), hash, chain.Block{}); err != nil || got == nil {
		t.Errorf("both have it: %+v %v", got, err)
	}
	a.Set(chaintest.Faults{Down: true})
	if got, err := r.FindReceipt(t.Context(), chain.Hash{1}, chain.Block{}); err == nil {
		t.Errorf("one did not answer: %+v", got)
	}
	a.Set(chaintest.Faults{Phantom: true})
	if got, err := r.FindReceipt(t.Context(), chain.Hash{1}, chain.Block{}); err == nil {
		t.Errorf("one lies: %+v", got)
	}
	b.Set(chaintest.Faults{Down: true})
	a.Set(chaintest.Faults{Down: true})
	for range 4 {
		r.FindReceipt(t.Context(), hash, chain.Block{}) //nolint:errcheck // it trips the breakers
	}
	if _, err := r.FindReceipt(t.Context(), hash, chain.Block{}); !errors.Is(err, errNoneHealthy) {
		t.Errorf("nobody left: %v", err)
	}
}

// Endpoints with and without a vote on whether a receipt is missing.
func TestAbsenceNeedsAWitness(t *testing.T) {
	for _, test := range []struct {
		name           string
		other          bool // beside an honest node
		method, answer string
		certain        bool
	}{
		{"a node that declines, beside another", true, "eth_getTransactionReceipt", `"error":{"code":-32000,"message":"indexing is in progress"}`, true},
		{"a node that declines, alone", false, "eth_getTransactionReceipt", `"error":{"code":-32000,"message":"indexing is in progress"}`, false},
		{"a node that is behind, beside another", true, "eth_blockNumber", `"result":"0x1"`, true},
		{"a node that is behind, alone", false, "eth_blockNumber", `"result":"0x1"`, false},
		{"a node that knows the block, not the receipt", true, "eth_getTransactionByHash", `"result":{"blockHash":"` + chain.Hash{7}.String() + `"}`, false},
		{"a node that has it in its pool", true, "eth_getTransactionByHash", `"result":{"blockHash":null}`, true},
		{"a node that does not offer the other method", false, "eth_getTransactionByHash", `"error":{"code":-32601,"message":"no"}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newChain(t, chaintest.Rules{})
			mine(t, c)
			at := mine(t, c)
			g := &gateway{node: c.Node("a")}
			urls := []string{serve(t, g)}
			if test.other {
				urls = append(urls, serve(t, c.Node("b")))
			}
			p := open(t, nil, urls...)
			g.replace(t, test.method, test.answer)
			if got, err := p.Reader().FindReceipt(t.Context(), chain.Hash{1}, at); got != nil || (err == nil) != test.certain {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Reads leave a node that declines one kind of read, even if it is healthy otherwise.
func TestReadsLeaveANodeThatDeclines(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	raw, hash := plain(alice, key5, 0)
	at := mine(t, c, raw)
	gates := []*gateway{{node: c.Node("a")}, {node: c.Node("b")}}
	p := open(t, nil, serve(t, gates[0]), serve(t, gates[1]))
	r := p.Reader()
	reading := p.reader().index
	gates[reading].replace(t, "eth_getTransactionReceipt", `"error":{"code":-32000,"message":"indexing is in progress"}`)
	for try := range 4 {
		if _, err := r.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Receipts(t.Context(), at, []chain.Hash{hash}); err != nil || len(got) != 1 {
			t.Errorf("try %d: %v, %v", try, got, err)
		}
		if p.reader().index == reading {
			t.Errorf("try %d: it is read from still", try)
		}
	}
}

func TestBatchInAnyOrder(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	node := c.Node("a")
	raw, _ := plain(alice, key5, 0)
	b := mine(t, c, raw)
	g := &gateway{node: node}
	g.misbehave("", func(w http.ResponseWriter, r *http.Request, body []byte) {
		recorder := httptest.NewRecorder()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		node.ServeHTTP(recorder, r)
		text := strings.TrimSpace(recorder.Body.String())
		if strings.HasPrefix(text, "[") {
			parts := strings.Split(strings.Trim(text, "[]"), "},{")
			slices.Reverse(parts)
			for i, part := range parts {
				parts[i] = "{" + strings.Trim(part, "{}") + "}"
			}
			text = "[" + strings.Join(parts, ",") + "]"
		}
		fmt.Fprint(w, text)
	})
	g.misbehave("eth_call", g.instead)
	p := open(t, nil, serve(t, g))
	got, err := p.Reader().Nonces(t.Context(), b, []chain.Sequence{
		{Chain: id, Sender: alice}, {Chain: id, Sender: alice, Key: key5}, {Chain: id, Sender: bob, Key: key5},
	})
	if err != nil || !slices.Equal(got, []uint64{0, 1, 0}) {
		t.Errorf("nonces %v %v", got, err)
	}
}
