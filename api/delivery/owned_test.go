package delivery

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// asker is one kind of client, and its rights to ann's transaction.
type asker struct {
	name, token          string
	owns, reads, changes bool
	sees                 bool // it may name the sender
	scopes               []access.Scope
}

// shared is a service with transactions of two clients in one group.
type shared struct {
	*stack
	keys   ring
	sender chain.Address
	sign   func(chain.Hash) []byte
	raw    []byte     // of ann's transaction
	ann    chain.Hash // no node has it yet
	bob    chain.Hash // of the same sender and group
	forged chain.Hash // bob's; signed by an access key that names the sender
	names  []string   // ann's client names
	askers []asker
}

var scopesOfClients = []access.Scope{access.Submit, access.Read, access.Cancel, access.RPC}

func newShared(t *testing.T, change ...func(*Config)) *shared {
	t.Helper()
	account := newKey(t)
	s := &shared{keys: newRing(t), sender: chain.Address(crypto.PubkeyToAddress(account.PublicKey))}
	s.sign = func(digest chain.Hash) []byte {
		sig, err := crypto.Sign(digest[:], account)
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	s.stack = grouped(t, append(change, s.keys.config, func(c *Config) {
		c.Access.Open = true // a client without a key is one of the askers
		c.RPC = rpcroute.Endpoint{Within: patience, Answer: func(ctx context.Context, r rpcroute.Request) ([]byte, error) { return s.heldFor(ctx, r) }}
	})...)
	withCanceler(&s.config, s.db)
	s.addr = serve(t, New(s.config), s.config.Limits)

	key := func(name string, k access.Key) asker {
		token, id := s.keys.Create(k)
		if name == "ann" {
			s.names = append(s.names, id.String())
		}
		return asker{name: name, token: token, scopes: k.Scopes, sees: k.Sees(s.sender)}
	}
	ann := key("ann", access.Key{Client: "ann-and-co", Scopes: scopesOfClients})
	s.names = append(s.names, "ann-and-co", "ann-request")
	bob := key("bob", access.Key{Scopes: scopesOfClients})
	submit := func(by asker, change ...func(*chain.Signed)) chain.Hash {
		t.Helper()
		raw := payment(payroll(0), uint64(len(s.recorded())), append(change, func(t *chain.Signed) {
			t.Sender = s.sender
			t.Window.After = uint64(testTime.Unix()) + 1<<20
		})...)
		if s.raw == nil {
			s.raw = raw
		}
		res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raw), "X-API-Key", by.token, "X-Request-Id", by.name+"-request")
		var out struct{ Results []result }
		unmarshal(t, res.body, &out)
		if len(out.Results) != 1 || !out.Results[0].OK {
			t.Fatalf("%s submits: %v", by.name, res)
		}
		return out.Results[0].TxHash
	}
	s.ann, s.bob = submit(ann), submit(bob)
	s.forged = submit(bob, func(t *chain.Signed) { t.Signature, t.AccessKey = chain.Keychain, &chain.Address{6} })

	look := newAPI(s.config)
	if err := look.reached(t.Context(), look.Submit.Transactions.Store.Head, look.checkpoint(transactions.Name), look.checkpoint(owners.Name)); err != nil {
		t.Fatal(err)
	}

	allowed := func(a asker, owns, reads, changes bool) {
		a.owns, a.reads, a.changes = owns, reads, changes
		s.askers = append(s.askers, a)
	}
	allowed(ann, true, true, true)
	allowed(key("ann's newer key", access.Key{Client: "ann-and-co", Scopes: scopesOfClients}), true, true, true)
	allowed(bob, false, false, false)
	allowed(asker{name: "no key", scopes: access.Scopes(), sees: true}, false, false, false)
	allowed(key("a key bound to the sender", access.Key{Scopes: scopesOfClients, Senders: []chain.Address{s.sender}}), true, true, true)
	allowed(key("a key bound to another", access.Key{Scopes: scopesOfClients, Senders: []chain.Address{{9}}}), false, false, false)
	allowed(key("ann's, bound to another", access.Key{Client: "ann-and-co", Scopes: scopesOfClients, Senders: []chain.Address{{9}}}), false, false, false)
	allowed(key("an auditor", access.Key{Scopes: []access.Scope{access.Audit}}), false, true, false)
	allowed(key("an auditor with all but admin", access.Key{Scopes: append([]access.Scope{access.Audit}, scopesOfClients...)}), false, true, false)
	allowed(key("an auditor of another sender", access.Key{Scopes: append([]access.Scope{access.Audit}, scopesOfClients...), Senders: []chain.Address{{9}}}), false, false, false)
	allowed(key("an operator", access.Key{Scopes: access.Scopes()}), false, true, true)
	return s
}

// heldFor returns whether the client may be shown ann's transaction by JSON-RPC.
func (s *shared) heldFor(ctx context.Context, r rpcroute.Request) ([]byte, error) {
	held, err := s.config.Submit.Transactions.Load(ctx, tx.Stream(testChain, s.ann))
	if err != nil {
		return nil, err
	}
	shows, err := r.Shows(ctx, held.State)
	if err != nil || !shows {
		return []byte(`{}`), err
	}
	return json.Marshal(map[string]any{"held": s.ann, "counts": r.Counts(s.sender)})
}

// probed is a route's request about ann's transaction.
type probed struct {
	target, body string
	header       []string
	// secret: while no node has the bytes, only owners find the hash in the answer.
	secret bool
	// named: the target or the body already names the transaction.
	named bool
	// open: the answer contains no transactions.
	open bool
	// missing is the status if the transaction, or everything of the client, is unknown; 0
	// means 200 without it.
	missing int
	bobs    bool // bob has a part in it, too
}

func (s *shared) probes() map[string]probed {
	hash := "/v1/transactions/" + s.ann.String()
	groupID := payroll(0).Group()
	sig := "Signature 0x" + hex.EncodeToString(s.sign(group.Digest(groupID)))
	return map[string]probed{
		"POST /v1/transactions":              {target: "/v1/transactions?validate=only", body: string(submissionOf(testChain, s.raw)), named: true},
		"GET /v1/transactions":               {target: "/v1/transactions"},
		"GET /v1/transactions/{hash}":        {target: hash, missing: 404},
		"DELETE /v1/transactions/{hash}":     {target: hash, missing: 404},
		"GET /v1/transactions/{hash}/events": {target: hash + "/events", missing: 404},
		"POST /rpc":                          {target: "/rpc", body: `{}`, secret: true},
		"POST /rpc/{chainId}":                {target: "/rpc/42431", body: `{}`, secret: true},
		"GET /v1/senders/{sender}/groups":    {target: groupsPath(s.sender), open: true}, // see TestGroupOfTwoClients
		"GET /v1/senders/{sender}/groups/{groupId}": {
			target: groupsPath(s.sender) + "/" + groupID.String(), missing: 404, bobs: true,
		},
		"POST /v1/senders/{sender}/groups/{groupId}/cancel": {
			target: cancelPath(s.sender, groupID, ""), header: []string{"Authorization", sig}, open: true, // see TestGroupOfTwoClients
		},
		"GET /v1/events":       {target: "/v1/events?after=0&until=head", header: []string{"Accept", "application/x-ndjson"}},
		"GET /openapi.yaml":    {target: "/openapi.yaml", open: true},
		"GET /openapi.json":    {target: "/openapi.json", open: true},
		"GET /docs":            {target: "/docs", open: true},
		"GET /problems/{code}": {target: "/problems/not-found", open: true},
		"GET /health":          {target: "/health", open: true},
		"GET /livez":           {target: "/livez", open: true},
		"GET /readyz":          {target: "/readyz", open: true},
	}
}

// On every route a transaction exists only for its owners and for auditors. Others see neither
// its hash nor the name, key or request of its submitter. A new route without an entry fails
// here.
func TestOwnedOnEveryRoute(t *testing.T) {
	s := newShared(t)
	probes := s.probes()
	for _, r := range allRoutes(s.config) {
		name := r.Method + " " + r.Path
		p, there := probes[name]
		if !there {
			t.Errorf("%s: nobody has said how it keeps a client to its own", name)
			continue
		}
		if strings.HasSuffix(r.Path, "/cancel") {
			continue // it would end the transactions that the other probes need
		}
		for _, a := range s.askers {
			t.Run(name+" by "+a.name, func(t *testing.T) { s.probe(t, r, p, a) })
		}
	}
}

func (s *shared) probe(t *testing.T, r rest.Route, p probed, a asker) {
	header := p.header
	if a.token != "" {
		header = append(header, "X-API-Key", a.token)
	}
	res, err := s.send(r.Method, p.target, []byte(p.body), header...)
	if err != nil {
		t.Fatal(err)
	}
	reach := a.reads
	if r.Scope != access.Read {
		reach = a.changes
	}
	if p.secret {
		reach = a.owns
	}
	scoped := (access.Key{Scopes: a.scopes}).Opens(r.Scope) || isOpen(r)
	switch {
	case !scoped:
		if res.status != http.StatusForbidden {
			t.Errorf("without the scope it answers %d", res.status)
		}
	case p.open:
		return
	case strings.Contains(r.Path, "{sender}") && !a.sees, !reach && p.missing != 0 && !(p.bobs && a.name == "bob"):
		if res.status != http.StatusNotFound {
			t.Errorf("it answers %d %s", res.status, res.body)
		}
	case r.Method == http.MethodDelete: // the stack has no chain to ask
		if res.status != http.StatusUnprocessableEntity && res.status != http.StatusBadRequest {
			t.Errorf("it answers %d %s", res.status, res.body)
		}
	case !p.named && (res.status != http.StatusOK || strings.Contains(string(res.body), s.ann.String()) != reach):
		t.Errorf("reached: %t; it answers %d %s", reach, res.status, res.body)
	}
	if a.reads && scoped || p.named {
		return
	}
	for _, said := range append(s.names, s.ann.String()) {
		if strings.Contains(string(res.body), said) {
			t.Errorf("it says %s: %s", said, res.body)
		}
	}
}

// Another client's transaction and an unknown one get the same answer, byte for byte.
func TestOthersIsAsUnknown(t *testing.T) {
	s := newShared(t)
	for _, a := range s.askers {
		if a.reads {
			continue
		}
		for _, rest := range []string{"", "?bogus=1", "?chainId=x", "?wait=executed&timeout=0", "/events"} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete} {
				if method == http.MethodDelete && rest == "/events" {
					continue
				}
				ask := func(hash chain.Hash) response {
					t.Helper()
					header := []string{"X-Request-Id", "same"}
					if a.token != "" {
						header = append(header, "X-API-Key", a.token)
					}
					res, err := s.send(method, "/v1/transactions/"+hash.String()+rest, nil, header...)
					if err != nil {
						t.Fatal(err)
					}
					return res
				}
				there, not := ask(s.ann), ask(chain.Hash{1})
				if there.status != http.StatusNotFound || string(there.body) != string(not.body) {
					t.Errorf("%s, %s %s: %d %s, of what is not there %d %s", a.name, method, rest, there.status, there.body, not.status, not.body)
				}
			}
		}
	}
}

// Events recorded before clients had names belong to the key, and to every key of its client.
func TestOwnedByTheActor(t *testing.T) {
	s := newShared(t)
	o := owners.Ownership{}
	for _, e := range s.recorded() {
		if e.Stream != tx.Stream(testChain, s.ann) || e.Version > 1 {
			continue
		}
		fact, err := s.config.Submit.Transactions.Codec.Decode(e.Name, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		accepted := fact.(tx.Accepted)
		accepted.Client = ""
		_, e.Data, err = s.config.Submit.Transactions.Codec.Encode(accepted)
		if o, err = o.Evolve(e, s.config.Submit.Transactions.Codec); err != nil {
			t.Fatal(err)
		}
	}
	a := newAPI(s.config)
	for _, who := range s.askers {
		var key *access.Key
		if known, ok := s.keys.Keys().Authenticate(who.token, testTime); ok {
			key = &known
		}
		if v := a.viewerOf(key); v.owns(o) != who.owns || v.reads(o) != who.reads || v.changes(o) != who.changes {
			t.Errorf("%s owns it %t, reads it %t, changes it %t", who.name, v.owns(o), v.reads(o), v.changes(o))
		}
	}
}
