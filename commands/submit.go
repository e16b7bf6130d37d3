package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Transactions handles the commands of domain/tx.
type Transactions = Handler[tx.State, tx.Command, tx.Event]

// ErrUnsupportedChain refuses a chain that is not configured.
const ErrUnsupportedChain = event.Refusal("unsupported-chain")

// Unserved is [ErrUnsupportedChain] for a chain that is not among those that are served,
// and says which are.
func Unserved[T any](id chain.ID, served map[chain.ID]T) error {
	return ErrUnsupportedChain.Because("chain %s is not served here; served: %s", id, Listed(maps.Keys(served)))
}

// Listed are the ids of chains that are served, for people.
func Listed(served iter.Seq[chain.ID]) string {
	var ids []string
	for _, id := range slices.Sorted(served) {
		ids = append(ids, id.String())
	}
	return strings.Join(ids, ", ")
}

// Grouping says which transactions have a group.
type Grouping string

const (
	GroupExplicit Grouping = "explicit" // those whose nonce key has the NKG1 format
	GroupAll      Grouping = "all"
)

// Submit takes signed transactions on: decode, check, keep the bytes, Accept.
type Submit struct {
	Transactions Transactions
	Vault        Vault
	// Decoders turn bytes into what they say, one per configured chain; a
	// *chain.Malformed is a refusal.
	Decoders map[chain.ID]func(raw []byte) (chain.Signed, error)
	Grouping Grouping
	// ExpiringWindow is how long before validBefore a transaction with an
	// expiring nonce is taken by nodes (TIP-1009: 30 s; TIP-1093: 300 s).
	ExpiringWindow time.Duration
	// Slots bounds how many signatures are checked at once, over all requests.
	Slots chan struct{}
	// Ahead is how far from now a transaction may become eligible; 0: any time.
	Ahead time.Duration
	// Quota, when set, bounds what each client has waiting.
	Quota *Quota
	// Allow, when set, may refuse a transaction before anything is kept of it.
	Allow  func(chain.Signed) error
	Now    func() time.Time
	Random io.Reader
	Crash  func(point string)
}

// Unbounded returns a Submit without quotas, for what the service itself has signed. Its
// lanes are shared: were one client's attempt refused, those of others above it would wait.
func (s *Submit) Unbounded() *Submit {
	unbounded := *s
	unbounded.Quota = nil
	return &unbounded
}

// Submission is the answer to one raw transaction: a state, or why not.
type Submission struct {
	State tx.State
	// Known means that the same client had submitted the hash before this request.
	// Another client's submission is not revealed.
	Known bool
	// Err is a *chain.Malformed, an event.Refusal, or bad luck.
	Err error
}

// Clients returns the client that submits the transaction at a place of a batch.
type Clients func(place int) string

// From is the Clients of a batch that one client submits.
func From(client string) Clients { return func(int) string { return client } }

// Batch answers each raw transaction in its place; one bad one does not touch
// the others. The error is bad luck, or [ErrUnsupportedChain], of the whole.
func (s *Submit) Batch(ctx context.Context, id chain.ID, raws [][]byte, clients Clients, meta event.Meta) ([]Submission, error) {
	decode := s.Decoders[id]
	if decode == nil {
		return nil, Unserved(id, s.Decoders)
	}
	answers := make([]Submission, len(raws))
	signed := s.decodeAll(decode, id, raws, answers)
	s.late(ctx, signed, clients, answers)

	first := map[chain.Hash]int{} // the first place of each hash in the batch
	places := make([]*Reservation, len(raws))
	var keep []Payload
	for i, t := range signed {
		if answers[i].Err != nil || answers[i].Known {
			continue
		}
		if _, twice := first[t.Hash]; twice {
			continue
		}
		first[t.Hash] = i
		if places[i], answers[i].Err = s.reserve(ctx, t, clients(i), len(raws[i])); answers[i].Err == nil {
			keep = append(keep, Payload{payload.Ref{Chain: id, Hash: t.Hash}, raws[i]})
		}
	}
	if len(keep) > 0 {
		if err := s.Vault.Keep(ctx, keep); err != nil {
			for _, place := range places {
				place.Return()
			}
			return nil, err
		}
		s.crash("payload.kept")
	}

	var accepting sync.WaitGroup
	for _, kept := range keep {
		i := first[kept.Hash]
		accepting.Go(func() { answers[i] = s.accept(ctx, signed[i], raws[i], clients(i), places[i], meta) })
	}
	accepting.Wait()
	for i, t := range signed {
		if answers[i].Err == nil && !answers[i].Known && first[t.Hash] != i {
			answers[i] = answers[first[t.Hash]]
			answers[i].Known = answers[i].Err == nil
		}
	}
	return answers, nil
}

// reserve takes a place in the client's quota before anything is kept. What the client has
// submitted before takes none: it is answered whatever the quota. What only others have is
// refused like what nobody has, so that the refusal tells nothing of them.
func (s *Submit) reserve(ctx context.Context, t chain.Signed, client string, bytes int) (*Reservation, error) {
	if s.Quota == nil {
		return nil, nil //nolint:nilnil // nothing is reserved
	}
	place, err := s.Quota.Take(ctx, client, bytes)
	if !errors.Is(err, access.ErrQuotaExceeded) {
		return place, err
	}
	r, failed := s.Transactions.Load(ctx, tx.Stream(t.Chain, t.Hash))
	switch {
	case failed != nil:
		return nil, failed
	case r.State.OwnedBy(client):
		return nil, nil //nolint:nilnil // nothing is reserved
	}
	return nil, err
}

// late answers anew what comes too late to be accepted, or too early: it may be the
// repetition of what was accepted in time, and a client that had no answer then gets it now.
func (s *Submit) late(ctx context.Context, signed []chain.Signed, clients Clients, answers []Submission) {
	for i, t := range signed {
		if !errors.Is(answers[i].Err, tx.ErrAlreadyExpired) && !errors.Is(answers[i].Err, tx.ErrTooFarAhead) {
			continue
		}
		if s.Allow != nil {
			if err := s.Allow(t); err != nil {
				answers[i].Err = err
				continue
			}
		}
		switch r, err := s.Transactions.Load(ctx, tx.Stream(t.Chain, t.Hash)); {
		case err != nil:
			answers[i].Err = err
		case r.State.OwnedBy(clients(i)):
			answers[i] = Submission{State: r.State, Known: true}
		}
	}
}

// decodeAll decodes and checks what needs no store. It fills answers with the
// refusals.
func (s *Submit) decodeAll(decode func([]byte) (chain.Signed, error), id chain.ID, raws [][]byte, answers []Submission) []chain.Signed {
	signed := make([]chain.Signed, len(raws))
	now := s.Now()
	var decoding sync.WaitGroup
	for i, raw := range raws {
		s.Slots <- struct{}{}
		decoding.Go(func() {
			defer func() { <-s.Slots }()
			signed[i], answers[i].Err = decode(raw)
			if answers[i].Err == nil {
				answers[i].Err = s.check(signed[i], id, now)
			}
			if answers[i].Err == nil && s.Allow != nil {
				answers[i].Err = s.Allow(signed[i])
			}
		})
	}
	decoding.Wait()
	return signed
}

// check refuses what the bytes alone, the wanted chain and the time forbid, so
// that nothing is kept of it.
func (s *Submit) check(t chain.Signed, id chain.ID, now time.Time) error {
	if t.Chain != id {
		return &chain.Malformed{Fault: chain.FaultWrongChain, Detail: fmt.Sprintf("signed for chain %s, submitted for chain %s", t.Chain, id)}
	}
	if at, last := s.eligible(t, now), now.Add(s.Ahead).Unix(); s.Ahead > 0 && at > uint64(max(last, 0)) {
		return tx.ErrTooFarAhead.Because("it may be sent from %d on; max-valid-after allows %d, %s from now", at, last, s.Ahead)
	}
	_, err := tx.State{}.Decide(tx.Accept{Accepted: tx.Accepted{Window: t.Window, At: now}})
	return err
}

// eligible is from when on a transaction may be sent, in Unix seconds.
func (s *Submit) eligible(t chain.Signed, now time.Time) uint64 {
	at := max(t.Window.After, uint64(max(now.Unix(), 0)))
	if window := uint64(s.ExpiringWindow / time.Second); t.NonceKey.IsExpiring() && t.Window.Before > window {
		at = max(at, t.Window.Before-window)
	}
	return at
}

func (s *Submit) accept(ctx context.Context, t chain.Signed, raw []byte, client string, place *Reservation, meta event.Meta) Submission {
	origin, err := Begin(s.Random, meta)
	if err != nil {
		place.Return()
		return Submission{Err: err}
	}
	stream := tx.Stream(t.Chain, t.Hash)
	r, err := s.Transactions.HandleFrom(ctx, stream, Result[tx.State]{}, tx.Accept{Accepted: s.accepted(t, raw, client)}, origin)
	if err == nil && r.Added > 0 && r.Version == event.Version(r.Added) { // its life begins
		place.Keep(r.Position)
	} else {
		place.Return()
	}
	if err != nil {
		return Submission{State: r.State, Err: err}
	}
	if r.State.Erased || r.State.Canceled {
		// These bytes were to be gone: take them out again.
		err = s.Vault.Rows.Erase(ctx, t.Chain, []chain.Hash{t.Hash})
	}
	return Submission{State: r.State, Known: r.Added == 0, Err: err}
}

func (s *Submit) accepted(t chain.Signed, raw []byte, client string) tx.Accepted {
	now := s.Now()
	a := tx.Accepted{
		Chain: t.Chain, Hash: t.Hash, Type: t.Type,
		Sender: t.Sender, Signature: t.Signature, AccessKey: t.AccessKey, FeePayer: t.FeePayer,
		NonceKey: t.NonceKey, Nonce: t.Nonce, Window: t.Window,
		EligibleAt: s.eligible(t, now),
		Bytes:      len(raw), RawHash: chain.Keccak(raw), Client: client, At: now,
	}
	a.Authorized = t.Authorized && (t.AuthorizedUntil == 0 || t.AuthorizedUntil > uint64(max(now.Unix(), 0)))
	if _, explicit := t.NonceKey.Explicit(); explicit || s.Grouping == GroupAll {
		g := t.NonceKey.Group()
		a.Group = &g
	}
	return a
}

func (s *Submit) crash(point string) {
	if s.Crash != nil {
		s.Crash(point)
	}
}

// IsRefusal reports whether an error is an expected no rather than bad luck.
func IsRefusal(err error) bool {
	var refusal event.Refusal
	var malformed *chain.Malformed
	return errors.As(err, &refusal) || errors.As(err, &malformed)
}
