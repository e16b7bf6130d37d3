package retention

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// late is the store's payloads; a client arrives just before the sweeper's erasure.
type late struct {
	commands.PayloadRows
	client func()
}

func (l *late) EraseOrphan(ctx context.Context, ref payload.Ref, before time.Time) error {
	l.client()
	return l.PayloadRows.EraseOrphan(ctx, ref, before)
}

// An orphan's client returns while the sweeper is about to erase it: the accepted
// transaction has its bytes.
func TestSweepSparesWhatIsSubmittedMeanwhile(t *testing.T) {
	const id = chain.ID(42431)
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	check(t, err)
	vault := commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader}
	transactions := commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader}
	submit := &commands.Submit{
		Transactions: transactions, Vault: vault, Slots: make(chan struct{}, 1), Now: time.Now,
		Decoders: map[chain.ID]func([]byte) (chain.Signed, error){id: chaintest.DecodePlain},
	}
	raw := chaintest.EncodePlain(chain.Signed{Chain: id, Type: 0x76, Sender: chain.Address{1}, Gas: 50_000})
	ref := payload.Ref{Chain: id, Hash: chain.Keccak(raw)}
	check(t, vault.Keep(t.Context(), []commands.Payload{{Ref: ref, Raw: raw}})) // and the process ended there
	began := time.Now()

	rows := &late{PayloadRows: db.Payloads()}
	rows.client = func() {
		answers, err := submit.Batch(t.Context(), id, [][]byte{raw}, commands.From(""), eventlog.Meta{})
		check(t, err)
		check(t, answers[0].Err)
	}
	r := &Retention{
		Store: db.Log(), Transactions: transactions, Payloads: rows,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	_, err = r.Sweep(t.Context(), began)
	check(t, err)
	if got, err := vault.Bytes(t.Context(), ref); err != nil || string(got) != string(raw) {
		t.Errorf("bytes of an accepted transaction: %v", err)
	}
}

// Bytes that will be submitted much later are left alone while Wanted reports them or
// fails; others are erased.
func TestSweepSparesWhatIsWanted(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	master, err := payload.NewMaster(make([]byte, payload.KeyBytes))
	check(t, err)
	vault := commands.Vault{Rows: db.Payloads(), Master: master, Random: rand.Reader}
	wanted, other := payload.Ref{Chain: 1, Hash: chain.Hash{1}}, payload.Ref{Chain: 1, Hash: chain.Hash{2}}
	check(t, vault.Keep(t.Context(), []commands.Payload{{Ref: wanted, Raw: []byte("wanted")}, {Ref: other, Raw: []byte("other")}}))
	answer, trouble := true, errors.New("the log is away")
	r := &Retention{
		Store: db.Log(), Transactions: commands.Transactions{Store: db.Log(), Codec: tx.Codec(), Random: rand.Reader}, Payloads: db.Payloads(),
		Wanted: func(_ context.Context, ref payload.Ref) (bool, error) { return answer && ref == wanted, trouble },
		Now:    time.Now, Log: slog.New(slog.DiscardHandler),
	}
	for _, want := range []struct {
		swept int
		err   error
		left  int
	}{{0, trouble, 2}, {1, nil, 1}, {1, nil, 0}} {
		n, err := r.Sweep(t.Context(), time.Now().Add(time.Minute))
		refs, failed := db.Payloads().Orphans(t.Context(), time.Now().Add(time.Minute), payload.Ref{}, 10)
		check(t, failed)
		if n != want.swept || !errors.Is(err, want.err) || len(refs) != want.left {
			t.Errorf("%d are swept (%v), %d are left; want %+v", n, err, len(refs), want)
		}
		if trouble == nil {
			answer = false
		}
		trouble = nil
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
