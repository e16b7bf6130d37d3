package relay

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// ErrNoSigner refuses a path with an address that is no signer here, or none that the key may use.
const ErrNoSigner = eventlog.Refusal("no-such-signer")

// Signers are the states of signers, and their balances as this process last read them.
type Signers interface {
	Signer(ctx context.Context, on chain.ID, a chain.Address) (signer.State, error)
	Balance(on chain.ID, a chain.Address) (balance chain.Amount, seen bool)
	// Looked returns when the balance was read.
	Looked(on chain.ID, a chain.Address) time.Time
}

// fleetShown is the answer to GET /v1/signers. A client sees the signers and pools that its key may
// use, and counts of its own intents; an auditor sees all, and everybody's.
type fleetShown struct {
	Signers []signerSeen `json:"signers"`
	Pools   []poolSeen   `json:"pools"`
	// CountedAt is when the intents were counted; absent before the first count.
	CountedAt int64 `json:"countedAt,omitempty"`
}

type signerSeen struct {
	Address chain.Address `json:"address"`
	Pools   []string      `json:"pools"`
	Chains  []onChain     `json:"chains"`
}

type poolSeen struct {
	Name    string          `json:"name"`
	Signers []chain.Address `json:"signers"`
	Waiting int             `json:"waiting"` // intents without a nonce that were requested from the pool
}

// onChain is a signer on one chain.
type onChain struct {
	ChainID chain.ID `json:"chainId"`
	Serves  bool     `json:"serves"` // it gets new intents
	// Waiting intents name the signer and have no nonce, Assigned have a nonce of it.
	Waiting  int `json:"waiting"`
	Assigned int `json:"assigned"`
	*Audited
}

// Audited are the parts of a signer's state that auditors see.
type Audited struct {
	Status    signer.Status `json:"status"`
	Actor     string        `json:"actor,omitempty"` // of the last change of the status by a person
	Reason    string        `json:"reason,omitempty"`
	Since     int64         `json:"since,omitempty"`
	Threshold chain.Amount  `json:"threshold"`
	Balance   *chain.Amount `json:"balance,omitempty"`
	BalanceAt int64         `json:"balanceAt,omitempty"`
	Failures  int           `json:"failures"` // in a row
	LastError *lastError    `json:"lastError,omitempty"`
	// NextNonce, InFlight and SignedAt are of the lane of nonce key 0; absent if it was never opened.
	NextNonce *uint64 `json:"nextNonce,omitempty"`
	InFlight  *int    `json:"inFlight,omitempty"`
	SignedAt  int64   `json:"signedAt,omitempty"` // the last attempt
}

type lastError struct {
	Kind   signer.FailureKind `json:"kind,omitempty"`
	Detail string             `json:"detail,omitempty"`
	At     int64              `json:"at"`
}

// listSigners answers GET /v1/signers.
func (d *desk) listSigners(r rest.Request) error {
	q, err := r.Query("chainId")
	if err != nil {
		return err
	}
	on, err := d.Fleet.chainsOf(q)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	out := fleetShown{Signers: []signerSeen{}, Pools: []poolSeen{}}
	counted := d.count(r, on)
	out.CountedAt = unix(counted.at)
	for _, a := range d.Fleet.Signers {
		if !d.shows(r, intent.From{Signer: &a}) {
			continue
		}
		one, err := d.signerSeen(ctx, r, a, on, counted)
		if err != nil {
			return err
		}
		out.Signers = append(out.Signers, one)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Fleet.Pools)) {
		if from := (intent.From{Pool: name}); d.shows(r, from) {
			out.Pools = append(out.Pools, poolSeen{name, d.Fleet.Pools[name], counted.waiting(0, from)})
		}
	}
	return r.ReplyRead(http.StatusOK, out)
}

// signer answers GET /v1/signers/{address}.
func (d *desk) signer(r rest.Request) error {
	q, err := r.Query("chainId")
	if err != nil {
		return err
	}
	on, err := d.Fleet.chainsOf(q)
	if err != nil {
		return err
	}
	a, err := addressIn(r)
	if err != nil {
		return err
	}
	if !slices.Contains(d.Fleet.Signers, a) || !d.shows(r, intent.From{Signer: &a}) {
		return ErrNoSigner
	}
	ctx, cancel := r.Work()
	defer cancel()
	one, err := d.signerSeen(ctx, r, a, on, d.count(r, on))
	if err != nil {
		return err
	}
	return r.ReplyRead(http.StatusOK, one)
}

// addressIn reads the address in the path.
func addressIn(r rest.Request) (a chain.Address, err error) {
	text, err := url.PathUnescape(mux.Vars(r.Request)["address"])
	if err == nil {
		a, err = chain.ParseAddress(text)
	}
	if err != nil {
		return a, rest.ErrInvalidAddress.Because("%v", err)
	}
	return a, nil
}

// signerSeen shows a signer on some chains.
func (d *desk) signerSeen(ctx context.Context, r rest.Request, a chain.Address, on []chain.ID, counted counts) (signerSeen, error) {
	out := signerSeen{Address: a, Pools: []string{}, Chains: []onChain{}}
	for _, name := range slices.Sorted(maps.Keys(d.Fleet.Pools)) {
		if slices.Contains(d.Fleet.Pools[name], a) && d.shows(r, intent.From{Pool: name}) {
			out.Pools = append(out.Pools, name)
		}
	}
	for _, id := range on {
		s, err := d.Fleet.States.Signer(ctx, id, a)
		if err != nil {
			return out, err
		}
		one := onChain{ChainID: id, Serves: s.Takes(), Waiting: counted.waiting(id, intent.From{Signer: &a}), Assigned: counted.assigned(id, a)}
		if d.audits(r) {
			if one.Audited, err = d.audited(ctx, id, a, s); err != nil {
				return out, err
			}
		}
		out.Chains = append(out.Chains, one)
	}
	return out, nil
}

// audited shows the parts of a signer's state that auditors see.
func (d *desk) audited(ctx context.Context, on chain.ID, a chain.Address, s signer.State) (*Audited, error) {
	out := &Audited{
		Status: s.Status(), Actor: s.Stance.Actor, Reason: s.Stance.Reason, Since: unix(s.Stance.Since), Threshold: s.Threshold, Failures: len(s.Failures),
		BalanceAt: unix(d.Fleet.States.Looked(on, a)),
	}
	if !s.Known {
		out.Status = "unregistered"
	}
	if balance, seen := d.Fleet.States.Balance(on, a); seen {
		out.Balance = &balance
	}
	if f := s.Last; f != nil {
		out.LastError = &lastError{f.Kind, f.Detail, unix(f.At)}
	}
	row, opened, err := d.Fleet.Lanes.Find(ctx, chain.Sequence{Chain: on, Sender: a})
	if err != nil || !opened {
		return out, err
	}
	inFlight := row.State.InFlight()
	out.InFlight, out.SignedAt = &inFlight, unix(row.SignedAt)
	if row.State.Known {
		out.NextNonce = &row.State.Next
	}
	return out, nil
}

// audits reports whether a request sees what belongs to operators: with the scopes audit and admin, or
// where no API key exists.
func (d *desk) audits(r rest.Request) bool {
	if key, ok := r.Key(); ok {
		return key.Audits()
	}
	return !d.API.Access.Current().Closed()
}

// shows reports whether a request sees a signer or pool: its key may use it, or it audits.
func (d *desk) shows(r rest.Request, of intent.From) bool {
	key, ok := r.Key()
	if !ok || key.Audits() {
		return true
	}
	if of.Signer != nil {
		return key.UsesSigner(*of.Signer)
	}
	return key.UsesPool(of.Pool)
}

// counts are numbers of open intents, by chain.
type counts struct {
	all map[chain.ID][]intent.Demand
	at  time.Time // of the oldest count; zero: a chain's intents were not counted yet
}

// count returns the last counts of the intents on some chains that a request may see.
func (d *desk) count(r rest.Request, on []chain.ID) counts {
	c := counts{all: map[chain.ID][]intent.Demand{}}
	client := d.client(r)
	for i, id := range on {
		all, at := d.Fleet.Demand(id)
		if i == 0 || at.Before(c.at) {
			c.at = at
		}
		for _, one := range all {
			if d.audits(r) || one.Client == client {
				c.all[id] = append(c.all[id], one)
			}
		}
	}
	return c
}

// waiting counts the intents without a nonce that were requested from a signer or pool, on a chain or
// (0) on all.
func (c counts) waiting(on chain.ID, from intent.From) (n int) {
	for id, all := range c.all {
		for _, one := range all {
			if (on == 0 || on == id) && one.From.Name() == from.Name() {
				n += one.Waiting
			}
		}
	}
	return n
}

// assigned counts the intents with a nonce of a signer.
func (c counts) assigned(on chain.ID, a chain.Address) (n int) {
	for _, one := range c.all[on] {
		if one.From.Signer != nil && *one.From.Signer == a {
			n += one.Assigned
		}
	}
	return n
}

// Fleet are the signers, pools and lanes of the relay. Its routes show them.
type Fleet struct {
	Chains  []chain.ID
	Signers []chain.Address            // that may sign on them, wherever their keys are
	Pools   map[string][]chain.Address // by name
	States  Signers
	Lanes   LaneRows
	// Demand returns the last count of a chain's open intents, and when they were counted; zero before
	// the first count.
	Demand func(on chain.ID) ([]intent.Demand, time.Time)
	// Held returns the state of a lane that this process works on.
	Held func(id chain.Sequence) (HeldLane, bool)
	// Next asks the chain for a lane's next nonce.
	Next NextNonce
	// Diagnose examines a lane. Its answer is the JSON of relayer doctor. nil: it cannot here.
	Diagnose func(ctx context.Context, id chain.Sequence) (any, error)
}

// chainsOf reads the filter by chain. Without it, all chains are meant.
func (f *Fleet) chainsOf(q url.Values) ([]chain.ID, error) {
	id, err := rest.ReadChain(q)
	switch {
	case err != nil:
		return nil, err
	case id == 0:
		return f.Chains, nil
	case !slices.Contains(f.Chains, id):
		return []chain.ID{}, nil
	}
	return []chain.ID{id}, nil
}
