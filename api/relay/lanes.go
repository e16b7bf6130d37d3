package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/relay/lanes"
)

// ErrNoDiagnosis refuses a diagnosis where the lane could not be examined.
const ErrNoDiagnosis = eventlog.Refusal("diagnosis-failed")

// LaneRows reads the read model of lanes.
type LaneRows interface {
	Find(ctx context.Context, id chain.Sequence) (lanes.Row, bool, error)
	Step(ctx context.Context, f lanes.Filters, before eventlog.Position, limit int) ([]lanes.Row, eventlog.Position, error)
}

// NextNonce asks the chain for a lane's next nonce, on which a quorum of endpoints agrees.
type NextNonce func(ctx context.Context, id chain.Sequence) (lane.Witness, error)

// HeldLane is the state of a lane that this process works on.
type HeldLane struct {
	Budget int // most nonces in flight
	// Drift is [lane.State.Drift] at the last look at the chain.
	Drift int64
	// TurnAt is when the last turn of the lane's holder ended. Troubled means that it failed.
	TurnAt   time.Time
	Troubled bool
	// Trouble is the last error of a turn, also if later turns succeeded; TroubleAt is when it occurred.
	Trouble   string
	TroubleAt time.Time
}

// The charges for a request that asks the chain, and for a diagnosis, in units of rate.
const (
	askUnits      = 10
	diagnoseUnits = 50
)

// Places of diagnoses: of all clients, of one, and the number of one client's that wait. Each asks
// nodes, and reads streams.
const (
	diagnosePlaces = 2
	diagnoseShare  = 1
	diagnoseQueue  = 4
)

// askTime is the longest wait for the chain's next nonce. A lane is shown without it.
const askTime = 2 * time.Second

// laneShown is a lane in an answer.
type laneShown struct {
	ChainID  chain.ID       `json:"chainId"`
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	Holder   string         `json:"holder,omitempty"`
	Token    lane.Token     `json:"token"`
	OpenedAt int64          `json:"openedAt,omitempty"`

	NextNonce *uint64 `json:"nextNonce,omitempty"` // absent before the chain was asked
	InFlight  int     `json:"inFlight"`
	Open      int     `json:"open"`
	Holes     int     `json:"holes"`
	Front     *front  `json:"front,omitempty"`
	// Waiting intents have no nonce and may get one of this lane, Assigned have one.
	Waiting  int `json:"waiting"`
	Assigned int `json:"assigned"`

	SignerStatus signer.Status `json:"signerStatus"`
	Balance      *chain.Amount `json:"balance,omitempty"`
	BalanceAt    int64         `json:"balanceAt,omitempty"`

	SignedAt int64     `json:"signedAt,omitempty"` // the last attempt
	SeenAt   int64     `json:"seenAt,omitempty"`   // the last event or, at the replica that works on it, the last turn
	Here     *heldHere `json:"here,omitempty"`
	// The chain's next nonce, and the difference from it: in the answer about one lane, or at the
	// replica that works on the lane.
	ChainNonce *uint64 `json:"chainNonce,omitempty"`
	ChainBlock uint64  `json:"chainBlock,omitempty"`
	Drift      *int64  `json:"drift,omitempty"`
	ChainError string  `json:"chainError,omitempty"`
}

// front is the lowest nonce that is signed and in no block.
type front struct {
	Nonce    uint64          `json:"nonce"`
	Intent   *chain.IntentID `json:"intentId,omitempty"`
	Since    int64           `json:"since"` // its first attempt
	Attempts int             `json:"attempts"`
	TxHash   chain.Hash      `json:"txHash"` // of the last attempt
}

// heldHere is the state of a lane that the answering replica works on.
type heldHere struct {
	Budget    int        `json:"budget"`
	TurnAt    int64      `json:"turnAt"`
	InTrouble bool       `json:"inTrouble"`
	LastError *lastError `json:"lastError,omitempty"`
}

// lanePage is the answer to GET /v1/lanes.
type lanePage struct {
	Lanes      []laneShown `json:"lanes"`
	CountedAt  int64       `json:"countedAt,omitempty"`
	NextCursor string      `json:"nextCursor,omitempty"`
	HasMore    bool        `json:"hasMore"`
}

// listLanes answers GET /v1/lanes.
func (d *desk) listLanes(r rest.Request) error {
	if !d.audits(r) {
		return rest.ErrForbidden.Because("lanes are shown to keys with the scope audit")
	}
	q, err := r.Query("chainId", "signer", "holder", "busy", "limit", "cursor")
	if err != nil {
		return err
	}
	f, err := laneFilters(q)
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	list := "lanes?" + url.Values{"chainId": q["chainId"], "signer": q["signer"], "holder": q["holder"], "busy": q["busy"]}.Encode()
	var before eventlog.Position
	if q.Has("cursor") {
		if before, err = r.ReadCursor(q.Get("cursor"), list); err != nil {
			return err
		}
	}
	ctx, cancel := r.Work()
	defer cancel()
	rows, more, err := rest.ReadPage(ctx, r, before, limit, func(ctx context.Context, before eventlog.Position, limit int) ([]lanes.Row, eventlog.Position, error) {
		return d.Fleet.Lanes.Step(ctx, f, before, limit)
	}, func(row lanes.Row) eventlog.Position { return row.Position })
	if err != nil {
		return err
	}
	counted := d.count(r, d.Fleet.Chains)
	out := lanePage{Lanes: []laneShown{}, HasMore: more != 0, CountedAt: unix(counted.at)}
	for _, row := range rows {
		one, err := d.laneShown(ctx, row, counted)
		if err != nil {
			return err
		}
		out.Lanes = append(out.Lanes, one)
	}
	if out.HasMore {
		out.NextCursor = r.Cursor(more, list)
		next := url.Values{}
		for name, values := range q {
			next[name] = values
		}
		next.Set("cursor", out.NextCursor)
		r.Answering().Set("Link", "</v1/lanes?"+next.Encode()+`>; rel="next"`)
	}
	return r.ReplyRead(http.StatusOK, out)
}

// laneFilters reads the filters of a list.
func laneFilters(q url.Values) (f lanes.Filters, err error) {
	if f.Chain, err = rest.ReadChain(q); err != nil {
		return f, err
	}
	if q.Has("signer") {
		a, err := chain.ParseAddress(q.Get("signer"))
		if err != nil {
			return f, rest.ErrInvalidFilter.Because("signer: %v", err)
		}
		f.Signer = &a
	}
	if f.Holder = q.Get("holder"); q.Has("holder") && f.Holder == "" {
		return f, rest.ErrInvalidFilter.Because("holder is empty")
	}
	if q.Has("busy") {
		busy, err := strconv.ParseBool(q.Get("busy"))
		if err != nil {
			return f, rest.ErrInvalidFilter.Because("busy must be true or false")
		}
		f.Busy = &busy
	}
	return f, nil
}

// laneShown shows a lane, without asking the chain.
func (d *desk) laneShown(ctx context.Context, row lanes.Row, counted counts) (laneShown, error) {
	id, s := row.ID, row.State
	state, err := d.Fleet.States.Signer(ctx, id.Chain, id.Sender)
	if err != nil {
		return laneShown{}, err
	}
	out := laneShown{
		ChainID: id.Chain, Signer: id.Sender, NonceKey: id.Key, Holder: s.Holder, Token: s.Token, OpenedAt: unix(row.OpenedAt),
		InFlight: s.InFlight(), Open: s.Open(), Holes: len(s.Holes()), SignerStatus: state.Status(),
		BalanceAt: unix(d.Fleet.States.Looked(id.Chain, id.Sender)), SignedAt: unix(row.SignedAt), SeenAt: unix(row.UpdatedAt),
	}
	if !state.Known {
		out.SignerStatus = "unregistered"
	}
	if s.Known {
		out.NextNonce = &s.Next
	}
	if slot, waits := s.Front(); waits {
		last := slot.Attempts[len(slot.Attempts)-1]
		out.Front = &front{Nonce: slot.Nonce, Since: unix(slot.Attempts[0].At), Attempts: len(slot.Attempts), TxHash: last.Hash}
		if !slot.Intent.IsZero() {
			out.Front.Intent = &slot.Intent
		}
	}
	if balance, seen := d.Fleet.States.Balance(id.Chain, id.Sender); seen {
		out.Balance = &balance
	}
	out.Waiting, out.Assigned = counted.ofLane(id, d.Fleet.Pools)
	if held, here := d.Fleet.Held(id); here {
		out.Here = &heldHere{Budget: held.Budget, TurnAt: unix(held.TurnAt), InTrouble: held.Troubled}
		if held.Trouble != "" {
			out.Here.LastError = &lastError{Detail: held.Trouble, At: unix(held.TroubleAt)}
		}
		out.Drift, out.SeenAt = &held.Drift, max(out.SeenAt, unix(held.TurnAt))
	}
	return out, nil
}

// ofLane counts the intents that may get a nonce of a lane, and those that have one.
func (c counts) ofLane(id chain.Sequence, pools map[string][]chain.Address) (waiting, assigned int) {
	for _, one := range c.all[id.Chain] {
		mine := one.From.Signer != nil && *one.From.Signer == id.Sender
		for _, a := range pools[one.From.Pool] {
			mine = mine || a == id.Sender
		}
		if !mine || one.Key != nil && *one.Key != id.Key || one.Key == nil && id.Key != (chain.NonceKey{}) {
			continue
		}
		waiting, assigned = waiting+one.Waiting, assigned+one.Assigned
	}
	return waiting, assigned
}

// laneIn reads the lane in the path, and refuses keys that may not see it.
func (d *desk) laneIn(r rest.Request) (id chain.Sequence, err error) {
	if !d.audits(r) {
		return id, rest.ErrForbidden.Because("lanes are shown to keys with the scope audit")
	}
	if _, err := r.Query(); err != nil {
		return id, err
	}
	path := func(name string) string {
		text, wrong := url.PathUnescape(mux.Vars(r.Request)[name])
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("the path is not well escaped"))
		}
		return text
	}
	var wrong [3]error
	id.Chain, wrong[0] = chain.ParseNamed(path("chain"))
	id.Sender, wrong[1] = chain.ParseAddress(path("address"))
	id.Key, wrong[2] = chain.ParseNonceKey(path("nonceKey"))
	if err := errors.Join(err, wrong[0], wrong[1], wrong[2]); err != nil {
		return id, rest.ErrInvalidRequest.Because("a lane is CHAIN/SIGNER/NONCE-KEY: %v", err)
	}
	return id, nil
}

// lane answers GET /v1/lanes/{chain}/{address}/{nonceKey}.
func (d *desk) lane(r rest.Request) error {
	id, err := d.laneIn(r)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	row, ok, err := d.Fleet.Lanes.Find(ctx, id)
	switch {
	case err != nil:
		return err
	case !ok:
		return lane.ErrUnknown
	}
	if err := r.ChargeUpToBurst(askUnits); err != nil {
		return err
	}
	out, err := d.laneShown(ctx, row, d.count(r, []chain.ID{id.Chain}))
	if err != nil {
		return err
	}
	asking, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	switch w, err := d.Fleet.Next(asking, id); {
	case err != nil:
		r.Note(fmt.Errorf("the next nonce of %s: %w", lane.Stream(id), err))
		out.ChainError = "the chain's next nonce is not known at present"
	default:
		drift := row.State.Drift(w)
		out.ChainNonce, out.ChainBlock, out.Drift = &w.Nonce, w.Block.Number, &drift
	}
	return r.ReplyRead(http.StatusOK, out)
}

// diagnosis answers GET /v1/lanes/{chain}/{address}/{nonceKey}/diagnosis.
func (d *desk) diagnosis(r rest.Request) error {
	id, err := d.laneIn(r)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	switch _, ok, err := d.Fleet.Lanes.Find(ctx, id); {
	case err != nil:
		return err
	case !ok:
		return lane.ErrUnknown
	}
	if err := r.ChargeUpToBurst(diagnoseUnits); err != nil {
		return err
	}
	leave, err := r.Enter(ctx, d.diagnoses)
	if errors.Is(err, commands.ErrTooManyWait) {
		r.RetrySoon()
		return rest.ErrRateLimited.Because("at most %d diagnoses of one client may wait", diagnoseQueue)
	}
	if err != nil {
		return err
	}
	defer leave()
	found, err := d.Fleet.Diagnose(ctx, id)
	if err != nil {
		r.Note(fmt.Errorf("diagnose %s: %w", lane.Stream(id), err))
		return ErrNoDiagnosis
	}
	return r.ReplyRead(http.StatusOK, found)
}

// fleetRoutes are the routes about signers, pools and lanes.
func (d *desk) fleetRoutes() []rest.Route {
	const lane = "/v1/lanes/{chain}/{address}/{nonceKey}"
	return []rest.Route{
		{Method: http.MethodGet, Path: "/v1/signers", Scope: access.Read, Answer: d.listSigners},
		{Method: http.MethodGet, Path: "/v1/signers/{address}", Scope: access.Read, Answer: d.signer},
		{Method: http.MethodGet, Path: "/v1/lanes", Scope: access.Audit, Answer: d.listLanes},
		{Method: http.MethodGet, Path: lane, Scope: access.Audit, Answer: d.lane},
		{Method: http.MethodGet, Path: lane + "/diagnosis", Scope: access.Audit, Answer: d.diagnosis},
	}
}
