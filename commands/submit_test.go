package commands_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/embedded/embeddedtest"
)

const moderato = chain.ID(42431)

var now = time.Unix(1_800_000_000, 0)

// desk is a Submit on a real store.
type desk struct {
	*commands.Submit
	db *embedded.DB
}

func newDesk(t *testing.T) desk {
	t.Helper()
	db := embeddedtest.Open(t)
	master, err := payload.NewMaster(bytes.Repeat([]byte{3}, payload.KeyBytes))
	check(t, err)
	return desk{&commands.Submit{
		Transactions: commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader},
		Vault:        commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader},
		Decoders:     map[chain.ID]func([]byte) (chain.Signed, error){moderato: chaintest.DecodePlain},
		Grouping:     commands.GroupExplicit, ExpiringWindow: 30 * time.Second,
		Slots: make(chan struct{}, 2), Now: func() time.Time { return now },
	}, db}
}

func begin(t *testing.T) handler.Origin {
	t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
	check(t, err)
	return o
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plain returns the n-th transaction of an account.
func plain(n uint64, change ...func(*chain.Signed)) (raw []byte, hash chain.Hash) {
	s := chain.Signed{Chain: moderato, Type: 0x76, Sender: chain.Address{0xa1}, Nonce: n, Gas: 50_000}
	for _, c := range change {
		c(&s)
	}
	raw = chaintest.EncodePlain(s)
	return raw, chain.Keccak(raw)
}

// submit submits a batch and fails the test on a batch error.
func (d desk) submit(t *testing.T, raws ...[]byte) []commands.Submission {
	t.Helper()
	answers, err := d.Batch(t.Context(), moderato, raws, commands.From(""), eventlog.Meta{})
	check(t, err)
	return answers
}

// take submits one transaction and fails the test unless it is accepted.
func (d desk) take(t *testing.T, raw []byte) tx.State {
	t.Helper()
	answer := d.submit(t, raw)[0]
	check(t, answer.Err)
	return answer.State
}

func (d desk) handle(t *testing.T, hash chain.Hash, c tx.Command) {
	t.Helper()
	_, err := d.Transactions.Handle(context.Background(), tx.Stream(moderato, hash), c, begin(t))
	check(t, err)
}

// recorded returns the names of all events, in order.
func (d desk) recorded(t *testing.T) (names []string) {
	t.Helper()
	for batch, err := range d.db.Log().ReadAll(t.Context(), 0, eventlog.Filter{}, 1000) {
		check(t, err)
		for _, e := range batch.Events {
			names = append(names, e.Name)
		}
	}
	return names
}

// kept reports whether the vault has a transaction's bytes.
func (d desk) kept(t *testing.T, hash chain.Hash) bool {
	t.Helper()
	_, err := d.Vault.Bytes(t.Context(), payload.Ref{Chain: moderato, Hash: hash})
	if err != nil && !errors.Is(err, payload.ErrGone) {
		t.Fatal(err)
	}
	return err == nil
}

// A client that submits bytes after their retention, or after as many clients as may own them, is
// refused and shown nothing of the transaction. Its owners are answered as before.
func TestResubmissionRefused(t *testing.T) {
	const owners = 1001
	d := newDesk(t)
	for name, others := range map[string]func(raw []byte, hash chain.Hash){
		"past retention": func(raw []byte, hash chain.Hash) {
			d.take(t, raw)
			block := chain.Block{Number: 7, Hash: chain.Hash{7}}
			for _, c := range []tx.Command{
				tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}, At: now}, tx.Finalize{Final: block, At: now}, tx.Erase{At: now}, tx.Retire{At: now},
			} {
				d.handle(t, hash, c)
			}
			check(t, d.Vault.Rows.Erase(t.Context(), moderato, []chain.Hash{hash}))
		},
		"many owners": func(raw []byte, hash chain.Hash) {
			d.take(t, raw)
			r, err := d.Transactions.Load(t.Context(), tx.Stream(moderato, hash))
			check(t, err)
			for n := range owners - 1 {
				r, err = d.Transactions.HandleFrom(t.Context(), tx.Stream(moderato, hash), r, tx.Accept{Accepted: tx.Accepted{Client: fmt.Sprint("client-", n), At: now}}, begin(t))
				check(t, err)
			}
		},
	} {
		raw, hash := plain(uint64(len(name)))
		others(raw, hash)
		kept, events := d.kept(t, hash), len(d.recorded(t))
		answers, err := d.Batch(t.Context(), moderato, [][]byte{raw, raw}, commands.From("bob"), eventlog.Meta{})
		check(t, err)
		for _, a := range answers {
			if diff := cmp.Diff(commands.Submission{Err: commands.ErrResubmission}, a, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s: bob's answer (-want +got):\n%s", name, diff)
			}
		}
		if d.kept(t, hash) != kept || len(d.recorded(t)) != events {
			t.Errorf("%s: bob's submission changed something", name)
		}
		if own := d.submit(t, raw)[0]; own.Err != nil || !own.Known || own.State.Accepted.Hash != hash {
			t.Errorf("%s: the first client is answered %+v", name, own)
		}
	}
}

// When many clients post the same bytes at once, exactly one is told that it was first.
func TestSubmitTogether(t *testing.T) {
	d := newDesk(t)
	raw, hash := plain(0)
	answers := make([]commands.Submission, 100)
	var posting sync.WaitGroup
	for i := range answers {
		posting.Go(func() {
			batch, err := d.Batch(context.Background(), moderato, [][]byte{raw}, commands.From(""), eventlog.Meta{})
			if err != nil {
				t.Error(err)
				return
			}
			answers[i] = batch[0]
		})
	}
	posting.Wait()
	first := 0
	for _, a := range answers {
		if a.Err != nil || a.State.Status != tx.StatusQueued || a.State.Accepted.Hash != hash {
			t.Errorf("answered %+v", a)
		}
		if !a.Known {
			first++
		}
	}
	if diff := cmp.Diff([]string{"tx.accepted.v1"}, d.recorded(t)); diff != "" || first != 1 {
		t.Errorf("%d were told to be first; recorded (-want +got):\n%s", first, diff)
	}
	if got, err := d.Vault.Bytes(t.Context(), payload.Ref{Chain: moderato, Hash: hash}); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("kept %x, %v", got, err)
	}
}

// Each transaction of a batch is answered at its place, and a bad one affects no other.
func TestSubmitBatch(t *testing.T) {
	d := newDesk(t)
	a, first := plain(0)
	b, second := plain(1)
	foreign, elsewhere := plain(2, func(s *chain.Signed) { s.Chain = 1 })
	late, past := plain(3, func(s *chain.Signed) { s.Window.Before = uint64(now.Unix()) })
	answers := d.submit(t, a, []byte("junk"), b, a, foreign, late, a)

	for i, want := range []struct {
		hash  chain.Hash
		known bool
		err   string
	}{
		{hash: first}, {err: "rlp"}, {hash: second}, {hash: first, known: true},
		{err: "wrong-chain"}, {err: string(tx.ErrAlreadyExpired)}, {hash: first, known: true},
	} {
		got := answers[i]
		if got.State.Accepted.Hash != want.hash || got.Known != want.known || reason(got.Err) != want.err {
			t.Errorf("place %d: %s, known %v, %v; want %+v", i, got.State.Accepted.Hash, got.Known, got.Err, want)
		}
		if got.Err != nil && !commands.IsRefusal(got.Err) {
			t.Errorf("place %d: %v is no refusal", i, got.Err)
		}
	}
	if n := len(d.recorded(t)); n != 2 || d.kept(t, elsewhere) || d.kept(t, past) {
		t.Errorf("%d events, kept of the refused: %v, %v", n, d.kept(t, elsewhere), d.kept(t, past))
	}
	if _, err := d.Batch(t.Context(), 5, [][]byte{a}, commands.From(""), eventlog.Meta{}); !errors.Is(err, commands.ErrUnsupportedChain) || !strings.HasSuffix(err.Error(), "chain 5 is not served here; served: 42431") {
		t.Errorf("a chain that is not served: %v", err)
	}
}

// reason returns the fault or the refusal's code.
func reason(err error) string {
	var malformed *chain.Malformed
	var refusal eventlog.Refusal
	switch {
	case errors.As(err, &malformed):
		return string(malformed.Fault)
	case errors.As(err, &refusal):
		return string(refusal)
	case err != nil:
		return err.Error()
	}
	return ""
}

// A client without an answer retries, perhaps after the window has closed. A transaction
// accepted in time is known; any other is too late.
func TestSubmitRepeatedTooLate(t *testing.T) {
	d := newDesk(t)
	inTime, hash := plain(0, func(s *chain.Signed) { s.Window.Before = uint64(now.Unix()) + 10 })
	never, other := plain(1, func(s *chain.Signed) { s.Window.Before = uint64(now.Unix()) + 10 })
	d.take(t, inTime)
	d.Now = func() time.Time { return now.Add(time.Minute) }
	answers := d.submit(t, never, inTime, inTime)
	if !errors.Is(answers[0].Err, tx.ErrAlreadyExpired) || d.kept(t, other) {
		t.Errorf("never taken on: %+v", answers[0])
	}
	for _, got := range answers[1:] {
		if got.Err != nil || !got.Known || got.State.Accepted.Hash != hash || got.State.Status != tx.StatusQueued {
			t.Errorf("taken on in time: %+v", got)
		}
	}
	d.Allow = func(chain.Signed) error { return errors.New("not yours") }
	if got := d.submit(t, inTime)[0]; got.Err == nil || got.Known {
		t.Errorf("to whom it is nothing: %+v", got)
	}
	if names := d.recorded(t); len(names) != 1 {
		t.Errorf("recorded %v", names)
	}
}

// A canceled or erased transaction stays known for ever: submitting it again neither
// revives it nor leaves bytes behind.
func TestSubmitRevivesNothing(t *testing.T) {
	ended := map[tx.Status][]tx.Command{
		tx.StatusCanceled: {tx.Cancel{Reason: "owner"}},
		tx.StatusInvalid: {
			tx.Report{Attempt: 1, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Permanent}}, Everyone: true},
			tx.Erase{},
		},
		tx.StatusStale: {
			tx.SeeNonce{Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Current: 9},
			tx.Finalize{Final: chain.Block{Number: 1, Hash: chain.Hash{1}}}, tx.Erase{}, tx.Retire{},
		},
	}
	for status, life := range ended {
		t.Run(string(status), func(t *testing.T) {
			d := newDesk(t)
			raw, hash := plain(0)
			d.take(t, raw)
			for _, c := range life {
				d.handle(t, hash, c)
			}
			check(t, d.db.Payloads().Erase(t.Context(), moderato, []chain.Hash{hash}))
			before := len(d.recorded(t))
			for range 2 {
				answer := d.submit(t, raw)[0]
				if answer.Err != nil || !answer.Known || answer.State.Status != status {
					t.Errorf("answered %s, known %v, %v", answer.State.Status, answer.Known, answer.Err)
				}
			}
			if n := len(d.recorded(t)); n != before || d.kept(t, hash) {
				t.Errorf("%d events more; bytes kept: %v", n-before, d.kept(t, hash))
			}
		})
	}
}

// The owner cancels, and the bytes are erased, while a client submits the same bytes:
// afterwards no bytes are left.
func TestSubmitWhileCanceled(t *testing.T) {
	for _, client := range []string{"", "bob"} {
		d := newDesk(t)
		raw, hash := plain(0)
		d.take(t, raw)
		check(t, d.db.Payloads().Erase(t.Context(), moderato, []chain.Hash{hash})) // so that its owner's bytes are stored again
		d.Crash = func(point string) {
			if point == "payload.kept" { // the client's bytes are in the vault, and Accepted is not decided yet
				d.handle(t, hash, tx.Cancel{Reason: "owner"})
				check(t, d.db.Payloads().Erase(t.Context(), moderato, []chain.Hash{hash}))
				d.handle(t, hash, tx.Erase{})
			}
		}
		answers, err := d.Batch(t.Context(), moderato, [][]byte{raw}, commands.From(client), eventlog.Meta{})
		check(t, err)
		if s := answers[0].State; s.Status != tx.StatusCanceled || d.kept(t, hash) {
			t.Errorf("%q: %s, bytes kept: %v", client, s.Status, d.kept(t, hash))
		}
	}
}

func TestSubmitSchedule(t *testing.T) {
	at := uint64(now.Unix())
	for name, tt := range map[string]struct {
		key    chain.NonceKey
		window chain.Window
		want   uint64
	}{
		"at once":                   {want: at},
		"from validAfter":           {window: chain.Window{After: at + 90}, want: at + 90},
		"validAfter has passed":     {window: chain.Window{After: at - 90}, want: at},
		"expiring, inside":          {chain.ExpiringKey, chain.Window{Before: at + 20}, at},
		"expiring, later":           {chain.ExpiringKey, chain.Window{Before: at + 600}, at + 570},
		"expiring, validAfter":      {chain.ExpiringKey, chain.Window{After: at + 590, Before: at + 600}, at + 590},
		"not expiring, validBefore": {chain.NonceKey{31: 1}, chain.Window{Before: at + 600}, at},
	} {
		t.Run(name, func(t *testing.T) {
			raw, _ := plain(0, func(s *chain.Signed) { s.NonceKey, s.Window = tt.key, tt.window })
			if got := newDesk(t).take(t, raw).Accepted.EligibleAt; got != tt.want {
				t.Errorf("eligible at %+d, want %+d", int64(got-at), int64(tt.want-at))
			}
		})
	}
}

func TestSubmitGroups(t *testing.T) {
	explicit, err := chain.ParseNonceKey("0x4e4b47310102000000000000000000010000002a0102030405060708090a0b0c")
	check(t, err)
	of := func(key chain.NonceKey) *chain.GroupID { g := key.Group(); return &g }
	other := chain.NonceKey{31: 7}
	for grouping, want := range map[commands.Grouping]map[chain.NonceKey]*chain.GroupID{
		commands.GroupExplicit: {explicit: of(explicit), other: nil, {}: nil},
		commands.GroupAll:      {explicit: of(explicit), other: of(other), {}: of(chain.NonceKey{})},
	} {
		d := newDesk(t)
		d.Grouping = grouping
		for key, group := range want {
			raw, _ := plain(0, func(s *chain.Signed) { s.NonceKey = key })
			if diff := cmp.Diff(group, d.take(t, raw).Accepted.Group); diff != "" {
				t.Errorf("grouping %s, key %s (-want +got):\n%s", grouping, key, diff)
			}
		}
	}
}

// full is a vault's store that stores nothing.
type full struct{ commands.PayloadRows }

var errFullDisk = errors.New("disk full")

func (full) Put(context.Context, []payload.Sealed) error { return errFullDisk }

// A transaction is not accepted unless its bytes are stored.
func TestSubmitWithoutVault(t *testing.T) {
	d := newDesk(t)
	d.Vault.Rows = full{d.db.Payloads()}
	raw, _ := plain(0)
	if _, err := d.Batch(t.Context(), moderato, [][]byte{raw}, commands.From(""), eventlog.Meta{}); !errors.Is(err, errFullDisk) || commands.IsRefusal(err) {
		t.Errorf("answered %v", err)
	}
	if names := d.recorded(t); len(names) != 0 {
		t.Errorf("recorded %v", names)
	}
}
