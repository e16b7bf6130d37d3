package canceler_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"log/slog"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/commands/delivery/grouping"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	moderato = chain.ID(42431)
	presto   = chain.ID(4217)
)

var (
	now = time.Unix(1_800_000_000, 0)
	key = explicit(42)
)

// explicit returns a nonce key that makes a group.
func explicit(n byte) chain.NonceKey {
	return chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 0x01, 0x02, 19: n}
}

// place is a canceler on a real store. Accepted transactions join only by a cancel itself,
// until a test runs the grouper.
type place struct {
	*testing.T
	db      *embedded.DB
	owner   *ecdsa.PrivateKey
	submit  *commands.Submit
	grouper *grouping.Grouper
	*canceler.Canceler
}

func newPlace(t *testing.T) *place {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	owner, err := crypto.GenerateKey()
	check(t, err)
	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	check(t, err)
	clock := func() time.Time { return now }
	log := slog.New(slog.DiscardHandler)
	transactions := commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader}
	groups := commands.Groups{Store: db.Log(), Codec: group.Codec(), Random: rand.Reader}
	p := &place{T: t, db: db, owner: owner}
	p.submit = &commands.Submit{
		Transactions: transactions, Vault: commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader},
		Decoders: map[chain.ID]func([]byte) (chain.Signed, error){moderato: chaintest.DecodePlain, presto: chaintest.DecodePlain},
		Grouping: commands.GroupExplicit, Slots: make(chan struct{}, 4), Now: clock,
	}
	p.grouper = &grouping.Grouper{
		Store: db.Log(), Checkpoints: db.Work(), Transactions: transactions, Groups: groups, Now: clock, Log: log,
	}
	p.Canceler = &canceler.Canceler{
		Store: db.Log(), Checkpoints: db.Work(), Transactions: transactions, Groups: groups, Payloads: db.Payloads(),
		Chains: []chain.ID{moderato, presto}, CatchUp: p.grouper.CatchUp,
		Check: tempo.CheckPrimitive, Verify: tempo.VerifyPrimitive, Deployment: "here", GroupIDForm: true,
		Now: clock, Log: log,
	}
	return p
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place) sender() chain.Address {
	return chain.Address(crypto.PubkeyToAddress(p.owner.PublicKey))
}

// accept submits the owner's n-th transaction of the group.
func (p *place) accept(n uint64, change ...func(*chain.Signed)) chain.Hash {
	p.Helper()
	s := chain.Signed{Chain: moderato, Type: 0x76, Sender: p.sender(), Signature: chain.Secp256k1, NonceKey: key, Nonce: n, Gas: 50_000}
	for _, c := range change {
		c(&s)
	}
	raw := chaintest.EncodePlain(s)
	answers, err := p.submit.Batch(context.Background(), s.Chain, [][]byte{raw}, commands.From(""), eventlog.Meta{})
	check(p.T, err)
	check(p.T, answers[0].Err)
	return chain.Keccak(raw)
}

func (p *place) handle(hash chain.Hash, wishes ...tx.Command) {
	p.Helper()
	for _, c := range wishes {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
		check(p.T, err)
		_, err = p.Transactions.Handle(context.Background(), tx.Stream(moderato, hash), c, o)
		check(p.T, err)
	}
}

func sign(t *testing.T, by *ecdsa.PrivateKey, digest chain.Hash) []byte {
	t.Helper()
	sig, err := crypto.Sign(digest[:], by)
	check(t, err)
	return sig
}

// byID returns a request with a signature over the group's id.
func (p *place) byID() canceler.Request {
	p.Helper()
	g := key.Group()
	return canceler.Request{Sender: p.sender(), Group: g, Form: group.FormGroupID, Signature: sign(p.T, p.owner, group.Digest(g))}
}

// typed returns a request by typed data, signed after these changes.
func (p *place) typed(change ...func(*group.Wish)) canceler.Request {
	p.Helper()
	wish := group.Wish{
		ID:         group.ID{Chain: moderato, Sender: p.sender(), Group: key.Group()},
		Deployment: "here", Expires: uint64(now.Unix()) + 600,
	}
	for _, c := range change {
		c(&wish)
	}
	return canceler.Request{
		Sender: p.sender(), Group: key.Group(), Form: group.FormTyped, Expires: wish.Expires,
		Signature: sign(p.T, p.owner, wish.Digest()),
	}
}

func (p *place) cancel(r canceler.Request) canceler.Answer {
	p.Helper()
	answer, err := p.Cancel(context.Background(), r, eventlog.Meta{Actor: "owner"})
	check(p.T, err)
	return answer
}

// events returns the names of all recorded events.
func (p *place) events() (names []string) {
	p.Helper()
	for batch, err := range p.db.Log().ReadAll(context.Background(), 0, eventlog.Filter{}, 1000) {
		check(p.T, err)
		for _, e := range batch.Events {
			names = append(names, e.Name)
		}
	}
	return names
}

// outcome is a member's reported state, and whether its bytes are stored.
type outcome struct {
	Nonce                  uint64
	Status                 tx.Status
	Canceled, Erased, Kept bool
}

func (p *place) outcomes(a canceler.Answer) (all []outcome) {
	p.Helper()
	for _, m := range a.Members {
		all = append(all, outcome{m.Nonce, m.Status, m.Canceled, m.Erased, p.kept(m.Hash)})
	}
	return all
}

func (p *place) kept(hash chain.Hash) bool {
	p.Helper()
	_, err := p.submit.Vault.Bytes(context.Background(), payload.Ref{Chain: moderato, Hash: hash})
	if err != nil && !errors.Is(err, payload.ErrGone) {
		p.Fatal(err)
	}
	return err == nil
}

func (p *place) state(hash chain.Hash) tx.State {
	p.Helper()
	r, err := p.Transactions.Load(context.Background(), tx.Stream(moderato, hash))
	check(p.T, err)
	return r.State
}

var (
	block     = chain.Block{Number: 7, Hash: chain.Hash{7}}
	rival     = chain.Block{Number: 7, Hash: chain.Hash{8}}
	executed  = tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}}
	finalized = tx.Finalize{Final: block}
	taken     = tx.Report{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken}}}
)

// Every member that has not ended is canceled and its bytes are erased; the others stay
// unchanged. A repeated request changes and records nothing.
func TestCancel(t *testing.T) {
	for form, request := range map[group.Form]func(*place) canceler.Request{
		group.FormGroupID: (*place).byID,
		group.FormTyped:   func(p *place) canceler.Request { return p.typed() },
	} {
		t.Run(string(form), func(t *testing.T) {
			p := newPlace(t)
			done, sent, invalid := p.accept(0), p.accept(1), p.accept(2)
			p.accept(3)
			p.handle(done, executed, finalized)
			p.handle(sent, taken)
			p.handle(invalid, tx.Report{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Permanent}}, Everyone: true})
			stranger := p.accept(0, func(s *chain.Signed) { s.Sender = chain.Address{1} })
			other := p.accept(0, func(s *chain.Signed) { s.NonceKey = explicit(43) })

			want := []outcome{
				{0, tx.StatusExecuted, false, false, true},
				{1, tx.StatusCanceled, true, true, false},
				{2, tx.StatusInvalid, false, false, true},
				{3, tx.StatusCanceled, true, true, false},
			}
			wish := request(p)
			answer := p.cancel(wish)
			if diff := cmp.Diff(want, p.outcomes(answer)); diff != "" {
				t.Errorf("canceled (-want +got):\n%s", diff)
			}
			if answer.ID != (group.ID{Chain: moderato, Sender: p.sender(), Group: key.Group()}) || answer.NonceKey != key {
				t.Errorf("answered for %+v", answer.ID)
			}
			before := p.events()
			if diff := cmp.Diff(want, p.outcomes(p.cancel(wish))); diff != "" {
				t.Errorf("again (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, p.events()); diff != "" {
				t.Errorf("asking again recorded:\n%s", diff)
			}
			if p.state(stranger).Canceled || p.state(other).Canceled {
				t.Error("others were canceled too")
			}
		})
	}
}

// A cancel covers the members it finds, and its signature counts once. Shown again, it
// answers for those members, and later transactions are not canceled.
func TestCancelOfWhatIsThere(t *testing.T) {
	p := newPlace(t)
	p.accept(0)
	typed, byID := p.typed(), p.byID()
	p.cancel(typed)
	second := p.accept(1)
	if n := len(p.cancel(typed).Members); n != 1 || p.state(second).Canceled {
		t.Errorf("typed data shown again found %d members; the later one canceled: %v", n, p.state(second).Canceled)
	}
	if n := len(p.cancel(byID).Members); n != 2 || !p.state(second).Canceled {
		t.Errorf("the id's signature found %d members; the later one canceled: %v", n, p.state(second).Canceled)
	}
	// Attack: a stranger who has seen the signature over the id shows it again.
	third := p.accept(2)
	if n := len(p.cancel(byID).Members); n != 2 || p.state(third).Canceled {
		t.Errorf("the id's signature shown again found %d members; the later one canceled: %v", n, p.state(third).Canceled)
	}
	if n := len(p.cancel(typed).Members); n != 1 {
		t.Errorf("the first signature found %d members", n)
	}
}

// A transaction in a block that may be reorged is marked: after a reorg the bytes are not
// sent again.
func TestCancelOfWhatIsAnnounced(t *testing.T) {
	p := newPlace(t)
	hash := p.accept(0)
	p.handle(hash, taken, executed)
	want := []outcome{{0, tx.StatusExecuted, true, true, false}}
	if diff := cmp.Diff(want, p.outcomes(p.cancel(p.byID()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.handle(hash, tx.LoseBlock{Was: block, Now: rival})
	if s := p.state(hash); s.Status != tx.StatusCanceled || s.Sendable() {
		t.Errorf("un-mined it is %s", s.Status)
	}
	p.handle(hash, tx.SeeReceipt{Receipt: chain.Receipt{Block: rival, Status: 1}})
	if s := p.state(hash); s.Status != tx.StatusExecuted || !s.Canceled {
		t.Errorf("mined all the same it is %s, canceled %v", s.Status, s.Canceled)
	}
}

// A request by anyone but the owner changes nothing, and is refused with the reason.
func TestWhoMayCancel(t *testing.T) {
	p := newPlace(t)
	p.accept(0)
	p.grouped()
	before := p.events()
	stranger, err := crypto.GenerateKey()
	check(t, err)
	g := key.Group()
	expires := func(at time.Time) func(*group.Wish) { return func(w *group.Wish) { w.Expires = uint64(at.Unix()) } }
	with := func(r canceler.Request, change func(*canceler.Request)) canceler.Request { change(&r); return r }
	for name, tt := range map[string]struct {
		request canceler.Request
		want    error
	}{
		"no signature":            {with(p.byID(), func(r *canceler.Request) { r.Signature = nil }), canceler.ErrMalformed},
		"one byte too many":       {with(p.byID(), func(r *canceler.Request) { r.Signature = append(r.Signature, 0) }), canceler.ErrMalformed},
		"high s":                  {with(p.byID(), func(r *canceler.Request) { r.Signature = highS(r.Signature) }), canceler.ErrMalformed},
		"access key":              {with(p.byID(), func(r *canceler.Request) { r.Signature = slices.Concat([]byte{4}, make([]byte, 20), r.Signature) }), canceler.ErrMalformed},
		"P-256, no curve point":   {with(p.byID(), func(r *canceler.Request) { r.Signature = append([]byte{1}, bytes.Repeat([]byte{1}, 129)...) }), canceler.ErrMalformed},
		"a stranger":              {with(p.byID(), func(r *canceler.Request) { r.Signature = sign(t, stranger, group.Digest(g)) }), canceler.ErrNotOwner},
		"another group":           {with(p.byID(), func(r *canceler.Request) { r.Signature = sign(t, p.owner, group.Digest(explicit(43).Group())) }), canceler.ErrNotOwner},
		"typed: another group":    {p.typed(func(w *group.Wish) { w.Group = explicit(43).Group() }), canceler.ErrNotOwner},
		"typed: another chain":    {with(p.typed(), func(r *canceler.Request) { r.Chain = presto }), canceler.ErrNotOwner},
		"typed: an unserved one":  {p.typed(func(w *group.Wish) { w.Chain = 1 }), canceler.ErrNotOwner},
		"typed: other deployment": {p.typed(func(w *group.Wish) { w.Deployment = "there" }), canceler.ErrNotOwner},
		"typed: other expiry":     {with(p.typed(), func(r *canceler.Request) { r.Expires++ }), canceler.ErrNotOwner},
		"typed: expired":          {p.typed(expires(now)), group.ErrExpired},
		"typed: long ago":         {p.typed(expires(now.Add(-time.Hour))), group.ErrExpired},
		"typed: for too long":     {p.typed(expires(now.Add(canceler.ExpiryMax + time.Second))), canceler.ErrMalformed},
		"typed as the other form": {with(p.typed(), func(r *canceler.Request) { r.Form = group.FormGroupID }), canceler.ErrNotOwner},
		"unknown group": {with(p.byID(), func(r *canceler.Request) {
			r.Group, r.Signature = chain.GroupID{1}, sign(t, p.owner, group.Digest(chain.GroupID{1}))
		}), group.ErrUnknown},
		"not on that chain": {with(p.byID(), func(r *canceler.Request) { r.Chain = presto }), group.ErrUnknown},
	} {
		if _, err := p.Cancel(t.Context(), tt.request, eventlog.Meta{}); !errors.Is(err, tt.want) {
			t.Errorf("%s: answered %v, want %v", name, err, tt.want)
		}
	}
	p.GroupIDForm = false
	if _, err := p.Cancel(t.Context(), p.byID(), eventlog.Meta{}); !errors.Is(err, canceler.ErrFormOff) {
		t.Errorf("switched off: answered %v", err)
	}
	if diff := cmp.Diff(before, p.events()); diff != "" {
		t.Errorf("recorded all the same:\n%s", diff)
	}
	p.cancel(p.typed(expires(now.Add(canceler.ExpiryMax)))) // the longest
}

// highS returns the other valid signature over the same digest, which Tempo does not
// accept.
func highS(sig []byte) []byte {
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(sig[32:64]))
	high := slices.Concat(sig[:32], s.FillBytes(make([]byte, 32)), sig[64:])
	high[64] ^= 1
	return high
}

// One sender's group of one id on two chains is two groups: the request or the signed data
// must name the chain.
func TestTwoChains(t *testing.T) {
	p := newPlace(t)
	here := p.accept(0)
	p.accept(0, func(s *chain.Signed) { s.Chain = presto })
	if _, err := p.Cancel(t.Context(), p.byID(), eventlog.Meta{}); !errors.Is(err, canceler.ErrAmbiguousChain) {
		t.Errorf("answered %v", err)
	}
	if a := p.cancel(p.typed(func(w *group.Wish) { w.Chain = presto })); a.ID.Chain != presto || p.state(here).Canceled {
		t.Errorf("typed data for one chain canceled on %s", a.ID.Chain)
	}
	named := p.byID()
	named.Chain = moderato
	if a := p.cancel(named); a.ID.Chain != moderato || !p.state(here).Canceled {
		t.Errorf("canceled on %s", a.ID.Chain)
	}
}
