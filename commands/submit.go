package commands

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Transactions handles the commands of domain/delivery/tx.
type Transactions = handler.Handler[tx.State, tx.Command, tx.Event]

// ErrUnsupportedChain refuses a chain that is not configured.
const ErrUnsupportedChain = eventlog.Refusal("unsupported-chain")

// ErrResubmission refuses bytes that other clients have submitted and that take no further client:
// the transaction is past retention or lost its finality, or as many clients own it as may. The
// client does not own it, so nothing of its state is shown.
const ErrResubmission = eventlog.Refusal("resubmission-refused")

// Unserved returns [ErrUnsupportedChain] for a chain that is not served, with the list of
// served chains.
func Unserved[T any](id chain.ID, served map[chain.ID]T) error {
	return ErrUnsupportedChain.Because("chain %s is not served here; served: %s", id, Listed(maps.Keys(served)))
}

// Listed lists the ids of served chains, for people.
func Listed(served iter.Seq[chain.ID]) string {
	var ids []string
	for _, id := range slices.Sorted(served) {
		ids = append(ids, id.String())
	}
	return strings.Join(ids, ", ")
}

// Grouping selects the transactions that have a group.
type Grouping string

const (
	GroupExplicit Grouping = "explicit" // transactions whose nonce key has the NKG1 format
	GroupAll      Grouping = "all"
)

// Submit accepts signed transactions: it decodes them, checks them, stores the bytes, and
// appends Accepted.
type Submit struct {
	Transactions Transactions
	Vault        Vault
	// Decoders decode raw transactions, one decoder per configured chain. A
	// *chain.Malformed is a refusal.
	Decoders map[chain.ID]func(raw []byte) (chain.Signed, error)
	Grouping Grouping
	// ExpiringWindow is how long before validBefore nodes accept a transaction with an
	// expiring nonce (TIP-1009: 30 s; TIP-1093: 300 s).
	ExpiringWindow time.Duration
	// Slots bounds the number of concurrent signature checks, over all requests.
	Slots chan struct{}
	// Ahead is how far from now a transaction may become eligible; 0 means no limit.
	Ahead time.Duration
	// Quota, when set, bounds each client's waiting transactions.
	Quota *Quota
	// Turns, when set, lets a client's submissions of one transaction run one by one.
	Turns *Turns
	// Allow, when set, may refuse a transaction before any of it is stored.
	Allow func(chain.Signed) error
	Now   func() time.Time
	Crash func(point string)
}

// Unbounded returns a Submit without quotas, for transactions that the service itself has
// signed. Clients share the service's lanes: refusing one client's attempt would block
// other clients' attempts at higher nonces.
func (s *Submit) Unbounded() *Submit {
	unbounded := *s
	unbounded.Quota = nil
	return &unbounded
}

// Submission is the answer to one raw transaction: a state or an error.
type Submission struct {
	State tx.State
	// Known means that the same client had submitted the hash before this request. Another
	// client's submission is not revealed.
	Known bool
	// Err is a *chain.Malformed, an eventlog.Refusal, or a transient error.
	Err error
}

// Clients returns the client that submits the transaction at a place of a batch.
type Clients func(place int) string

// From is the Clients of a batch with a single client.
func From(client string) Clients { return func(int) string { return client } }

// Batch answers each raw transaction at its place; a bad transaction does not affect the
// others. The returned error concerns the whole batch: a transient error or
// [ErrUnsupportedChain].
func (s *Submit) Batch(ctx context.Context, id chain.ID, raws [][]byte, clients Clients, meta eventlog.Meta) ([]Submission, error) {
	decode := s.Decoders[id]
	if decode == nil {
		return nil, Unserved(id, s.Decoders)
	}
	answers := make([]Submission, len(raws))
	signed := s.decodeAll(decode, id, raws, answers)
	s.late(ctx, signed, clients, answers)
	leave, err := s.takeTurns(ctx, signed, clients, answers)
	if err != nil {
		return nil, err
	}
	defer leave()
	first := firstPlaces(signed, answers)
	s.repeated(ctx, signed, first, clients, answers)

	places := make([]*Reservation, len(raws))
	var keep []Payload
	for i, t := range signed {
		if answers[i].answered() || first[t.Hash] != i {
			continue
		}
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

// reserve takes a place in the client's quota before anything is stored. A transaction that
// the client itself has submitted before takes none, and is answered even if the quota is
// used up. A transaction known only from other clients is refused like an unknown one, so
// that the refusal reveals nothing about them.
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

// late answers transactions that arrive too late to be accepted, or too early. If the same
// client's transaction was accepted in time, this is a retry, and the client now gets its
// state.
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

// decodeAll decodes the transactions and makes the checks that need no store. It writes
// refusals into answers.
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

// check refuses a transaction for its bytes, its chain or the time, before any of it is
// stored.
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

// eligible returns the time from which a transaction may be sent, in Unix seconds.
func (s *Submit) eligible(t chain.Signed, now time.Time) uint64 {
	at := max(t.Window.After, uint64(max(now.Unix(), 0)))
	if window := uint64(s.ExpiringWindow / time.Second); t.NonceKey.IsExpiring() && t.Window.Before > window {
		at = max(at, t.Window.Before-window)
	}
	return at
}

func (s *Submit) accept(ctx context.Context, t chain.Signed, raw []byte, client string, place *Reservation, meta eventlog.Meta) Submission {
	stream := tx.Stream(t.Chain, t.Hash)
	r, err := s.Transactions.DoFrom(ctx, stream, handler.Result[tx.State]{}, tx.Accept{Accepted: s.accepted(t, raw, client)}, meta)
	if err == nil && r.Added > 0 { // also as a further owner: the transaction waits in this client's turn
		place.Keep(r.Position)
	} else {
		place.Return()
	}
	if err != nil {
		return Submission{State: r.State, Err: err}
	}
	if r.State.Erased || r.State.Canceled {
		// The transaction is erased or canceled: its bytes must not stay in the vault.
		err = s.Vault.Rows.Erase(ctx, t.Chain, []chain.Hash{t.Hash})
	}
	if err == nil && !r.State.OwnedBy(client) {
		return Submission{Err: ErrResubmission}
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

// IsRefusal reports whether an error is an expected refusal rather than a transient error.
func IsRefusal(err error) bool {
	var refusal eventlog.Refusal
	var malformed *chain.Malformed
	return errors.As(err, &refusal) || errors.As(err, &malformed)
}
