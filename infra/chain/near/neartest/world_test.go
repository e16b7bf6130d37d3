package neartest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holiman/uint256"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// signer is an account with one ed25519 key.
type signer struct {
	account string
	private ed25519.PrivateKey
	key     near.PublicKey
}

func signerOf(account string) signer {
	seed := sha256.Sum256([]byte("a test's key of " + account))
	private := ed25519.NewKeyFromSeed(seed[:])
	return signer{account, private, near.PublicKey{Type: near.Ed25519, Bytes: string(private.Public().(ed25519.PublicKey))}}
}

func (s signer) sign(t near.Transaction) near.Signed {
	t.Signer, t.Key = s.account, s.key
	hash := t.Hash()
	return near.Signed{Transaction: t, Signature: near.Signature{Type: near.Ed25519, Bytes: ed25519.Sign(s.private, hash[:])}}
}

// world is a chain with one node, alice and bob.
type world struct {
	*testing.T
	*Chain
	node       *Node
	server     *httptest.Server
	alice, bob signer
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{T: t, Chain: New(o), alice: signerOf("alice.near"), bob: signerOf("bob.near")}
	w.Create(w.alice.account, 100, w.alice.key)
	w.Create(w.bob.account, 100, w.bob.key)
	w.node = w.Node("one")
	w.server = httptest.NewServer(w.node)
	t.Cleanup(w.server.Close)
	return w
}

// next is alice's next nonce, plus some.
func (w *world) next(more uint64) uint64 {
	nonce, _ := w.Nonce(w.alice.account, w.alice.key)
	return nonce + 1 + more
}

// transfer is alice's transfer of one yoctoNEAR to bob.
func (w *world) transfer(nonce uint64) near.Signed {
	return w.alice.sign(near.Transaction{
		Nonce: near.Nonce{Value: nonce}, Receiver: w.bob.account, Block: w.Chain.Final().Hash,
		Actions: []near.Action{near.Transfer{Deposit: *uint256.NewInt(1)}},
	})
}

type answer struct {
	status int
	Result json.RawMessage
	Error  *struct {
		Name  string
		Cause struct {
			Name string
			Info json.RawMessage
		}
		Data json.RawMessage
	}
}

func (w *world) call(method string, params any) (a answer) {
	w.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "x", "method": method, "params": params})
	if err != nil {
		w.Fatal(err)
	}
	response, err := http.Post(w.server.URL, "application/json", strings.NewReader(string(body)))
	if err != nil {
		a.status = -1
		return a
	}
	defer response.Body.Close()
	a.status = response.StatusCode
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		w.Fatal(err)
	}
	return a
}

// cause is the name of the error's cause, with the InvalidTxError, or the result.
func (a answer) cause() string {
	if a.Error == nil {
		return string(a.Result)
	}
	return a.Error.Cause.Name + string(a.Error.Data)
}

func base64Of(s near.Signed) string { return base64.StdEncoding.EncodeToString(s.Encode()) }

func (w *world) send(s near.Signed, level string) answer {
	w.Helper()
	return w.call("send_tx", map[string]any{"signed_tx_base64": base64Of(s), "wait_until": level})
}

func (w *world) tx(s near.Signed) answer {
	w.Helper()
	return w.call("tx", map[string]any{"tx_hash": near.HashText(s.Hash()), "sender_account_id": s.Signer, "wait_until": "NONE"})
}

func (w *world) produce(blocks int) {
	for range blocks {
		w.Produce()
	}
}

// runs reports how often the transaction ran on the newest chain.
func (w *world) runs(s near.Signed) (times int) {
	for _, e := range w.Executed() {
		if e.Hash == s.Hash() {
			times++
		}
	}
	return times
}

func (w *world) want(a answer, part string) {
	w.Helper()
	if !strings.Contains(a.cause(), part) {
		w.Errorf("got %s, want %s", a.cause(), part)
	}
}
