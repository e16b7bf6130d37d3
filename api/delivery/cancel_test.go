package delivery

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// withCanceler lets the stack cancel groups on all its chains.
func withCanceler(c *Config, db *embedded.DB) *canceler.Canceler {
	groups := commands.Groups{Store: db.Log(), Codec: group.Codec(), Random: rand.Reader}
	grouper := &grouping.Grouper{
		Store: db.Log(), Checkpoints: db.Work(), Transactions: c.Submit.Transactions, Groups: groups, Now: c.Now, Log: c.Log,
	}
	made := &canceler.Canceler{
		Store: db.Log(), Checkpoints: db.Work(), Transactions: c.Submit.Transactions, Groups: groups, Payloads: db.Payloads(),
		Chains: []chain.ID{testChain, 1, 4217}, CatchUp: grouper.CatchUp,
		Check: tempo.CheckPrimitive, Verify: tempo.VerifyPrimitive, Deployment: "here", GroupIDForm: true,
		Now: c.Now, Log: c.Log,
	}
	c.Canceler = made
	return made
}

// member records a transaction of a group as accepted on a chain, without bytes.
func (s *stack) member(id chain.ID, sender chain.Address, key chain.NonceKey, nonce uint64) chain.Hash {
	s.t.Helper()
	origin, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	g := key.Group()
	hash := chain.Keccak(fmt.Append(nil, id, sender, key, nonce))
	accepted := tx.Accepted{Chain: id, Hash: hash, Sender: sender, Signature: chain.Secp256k1, NonceKey: key, Nonce: nonce, Group: &g, At: testTime}
	if _, err := s.config.Submit.Transactions.Handle(s.t.Context(), tx.Stream(id, hash), tx.Accept{Accepted: accepted}, origin); err != nil {
		s.t.Fatal(err)
	}
	return hash
}

func cancelPath(sender, groupID any, query string) string {
	return fmt.Sprintf("/v1/senders/%v/groups/%v/cancel%s", sender, groupID, query)
}

// Row 47, the vectors: every authorization that is signed over a group's id.
func TestCancelVectors(t *testing.T) {
	text, err := os.ReadFile("../../infra/chain/tempo/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		CancelAuth []struct {
			Name, Authorization, Expect string
			Sender                      chain.Address
			GroupID                     chain.GroupID
			NonceKey                    chain.NonceKey
		}
	}
	unmarshal(t, text, &file)
	// The answer to each kind of fault.
	answers := map[string]struct {
		status int
		code   eventlog.Refusal
	}{
		"other-signer":    {403, canceler.ErrNotOwner},
		"over-raw-group":  {403, canceler.ErrNotOwner},
		"over-hex-string": {403, canceler.ErrNotOwner},
		"eip191":          {403, canceler.ErrNotOwner},
		"keychain":        {400, canceler.ErrMalformed},
		"high-s":          {400, canceler.ErrMalformed},
	}
	valid, invalid := 0, 0
	for _, v := range file.CancelAuth {
		t.Run(v.Name, func(t *testing.T) {
			s := newStack(t)
			withCanceler(&s.config, s.db)
			s.restart()
			s.member(testChain, v.Sender, v.NonceKey, 5)
			res := s.do("POST", cancelPath(v.Sender, v.GroupID, ""), nil, "Authorization", v.Authorization, "Content-Type", "")
			if v.Expect == "valid" {
				valid++
				if res.status != 200 || !strings.Contains(string(res.body), `"canceled":1`) {
					t.Errorf("answered %v", res)
				}
				return
			}
			invalid++
			want := answers[v.Name[len("cancel-0-"):]]
			wantProblem(t, v.Name, res, want.status, want.code)
			if n := len(s.recorded()); n != 1 {
				t.Errorf("%d events, want the acceptance alone", n)
			}
		})
	}
	if valid != 12 || invalid != 12 {
		t.Errorf("%d valid, %d invalid", valid, invalid)
	}
}

// restart serves the configuration as it is now.
func (s *stack) restart() {
	s.t.Helper()
	s.addr = serve(s.t, New(s.config), s.config.Limits)
}

// cancelStack is a stack with an owner and a group of three, two of them open.
type cancelStack struct {
	*stack
	*canceler.Canceler
	owner  *ecdsa.PrivateKey
	sender chain.Address
	key    chain.NonceKey
	hashes []chain.Hash
}

func newCancelStack(t testing.TB) cancelStack {
	t.Helper()
	s := newStack(t)
	c := cancelStack{stack: s, Canceler: withCanceler(&s.config, s.db), owner: newKey(t), key: chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 1, 2, 19: 7}}
	s.restart()
	c.sender = chain.Address(crypto.PubkeyToAddress(c.owner.PublicKey))
	for n := range uint64(3) {
		c.hashes = append(c.hashes, s.member(testChain, c.sender, c.key, n))
	}
	block := chain.Block{Number: 7, Hash: chain.Hash{7}}
	s.handle(c.hashes[0], tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}})
	s.handle(c.hashes[0], tx.Finalize{Final: block})
	return c
}

func (c cancelStack) sign(digest chain.Hash) string {
	c.t.Helper()
	sig, err := crypto.Sign(digest[:], c.owner)
	if err != nil {
		c.t.Fatal(err)
	}
	return "0x" + hex.EncodeToString(sig)
}

// typed is the body of a request with typed data.
func (c cancelStack) typed(id chain.ID, expires uint64) []byte {
	c.t.Helper()
	wish := group.Wish{ID: group.ID{Chain: id, Sender: c.sender, Group: c.key.Group()}, Deployment: "here", Expires: expires}
	body, err := json.Marshal(map[string]any{"expires": expires, "signature": c.sign(wish.Digest())})
	if err != nil {
		c.t.Fatal(err)
	}
	return body
}

func (c cancelStack) path(query string) string { return cancelPath(c.sender, c.key.Group(), query) }

// A chunked body without chunks is no body: the signature in the header counts, with an
// Idempotency-Key too. A chunked body with bytes is a body.
func TestCancelWithoutALength(t *testing.T) {
	for _, remembered := range []string{"", "Idempotency-Key: k\r\n"} {
		c := newCancelStack(t)
		c.config.Idempotency = rest.Idempotency{Requests: c.db.Requests(), Keep: time.Hour, Hold: time.Minute}
		c.restart()
		ask := func(headers, body string) response {
			t.Helper()
			answers, _ := c.raw("POST "+c.path("?chainId=42431")+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+remembered+headers+"Transfer-Encoding: chunked\r\n\r\n"+body, patience)
			if len(answers) != 1 {
				t.Fatalf("%d answers", len(answers))
			}
			return answers[0]
		}
		signature := "Authorization: Signature " + c.sign(group.Digest(c.key.Group())) + "\r\n"
		wantProblem(t, "also a body", ask(jsonType+signature, "2\r\n{}\r\n0\r\n\r\n"), 400, canceler.ErrMalformed)
		if res := ask(signature, "0\r\n\r\n"); res.status != 200 {
			t.Errorf("%sno chunk: %v", remembered, res)
		}
	}
}

// Row 48, and the replay of 47: the answer lists each member; a repeat records nothing.
func TestCancelGroup(t *testing.T) {
	for name, ask := range map[string]func(c cancelStack) response{
		"typed data": func(c cancelStack) response {
			return c.do("POST", c.path(""), c.typed(testChain, uint64(testTime.Unix())+60))
		},
		"group id": func(c cancelStack) response {
			return c.do("POST", c.path("?chainId=42431"), nil, "Authorization", "signature "+c.sign(group.Digest(c.key.Group())))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCancelStack(t)
			member := func(n int, status tx.Status, canceled bool) string {
				return fmt.Sprintf(`{"txHash":"%s","nonce":%d,"status":"%s","canceled":%v,"payloadErased":%v}`, c.hashes[n], n, status, canceled, canceled)
			}
			want := fmt.Sprintf(`{"chainId":42431,"sender":"%s","groupId":"%s","nonceKey":"%s","canceled":2,"members":[%s,%s,%s]}`+"\n",
				c.sender, c.key.Group(), c.key, member(0, tx.StatusExecuted, false), member(1, tx.StatusCanceled, true), member(2, tx.StatusCanceled, true))
			if res := ask(c); res.status != 200 || string(res.body) != want {
				t.Fatalf("answered %v, want %s", res, want)
			}
			before := c.recorded()
			if res := ask(c); res.status != 200 || string(res.body) != want {
				t.Errorf("again answered %v", res)
			}
			if n := len(c.recorded()); n != len(before) {
				t.Errorf("%d events more", n-len(before))
			}
			wantMembers(t, c.one(c.hashes[1]), map[string]string{"status": `"canceled_locally"`, "canceled": "true", "payloadErased": "true"})
			if last := before[len(before)-1]; last.Meta.Causation.IsZero() || last.Meta.Correlation.IsZero() {
				t.Errorf("the last event's meta is %+v", last.Meta)
			}
		})
	}
}

// unfinished is a canceler that records a cancel and cannot finish it.
type unfinished struct{}

func (unfinished) Cancel(context.Context, canceler.Request, eventlog.Meta) (canceler.Answer, error) {
	return canceler.Answer{}, fmt.Errorf("%w: %w", canceler.ErrUnfinished, context.DeadlineExceeded)
}

func TestCancelUnfinished(t *testing.T) {
	c := newCancelStack(t)
	c.config.Canceler = unfinished{}
	c.restart()
	res := c.do("POST", c.path(""), nil, "Authorization", "Signature "+c.sign(chain.Hash{}))
	if p := wantProblem(t, "unfinished", res, 503, cancelUnfinished); !p.Retryable || res.header.Get("Retry-After") == "" {
		t.Errorf("answered %v", res)
	}
}
