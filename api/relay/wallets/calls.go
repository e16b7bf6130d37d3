package wallets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// version is the version of EIP-5792 in answers. Requests may also have the first version.
const version = "2.0.0"

func versions() []string { return []string{version, "1.0"} }

// sendCalls answers wallet_sendCalls: the calls are one intent, and its key is their id.
func (w *wallets) sendCalls(ctx context.Context, c jsonrpc.Call) (any, error) {
	if err := maySubmit(c.Request); err != nil {
		return nil, err
	}
	r, err := w.bundle(c)
	if err != nil {
		return nil, err
	}
	a, err := w.create(ctx, c, r)
	if err != nil {
		if own := (*jsonrpc.Error)(nil); errors.As(err, &own) && differs(own) {
			own.Code, own.Message = codeDuplicateID, "the id belongs to other calls"
		}
		return nil, err
	}
	return map[string]string{"id": a.State.Requested.Request.Key}, nil
}

// differs reports whether an error says that a key belongs to another request.
func differs(err *jsonrpc.Error) bool {
	p, ok := err.Data.(rest.Problem)
	return ok && p.Code == string(intent.ErrDiffers)
}

// bundle reads the parameter of wallet_sendCalls.
func (w *wallets) bundle(c jsonrpc.Call) (r intent.Request, err error) {
	if len(c.Params) != 1 {
		return r, invalid("want one argument, the calls")
	}
	m, err := object("the request", c.Params[0])
	if err != nil {
		return r, err
	}
	r.Client, r.Chain = c.Client, c.On
	atomic := false
	for _, read := range []func() error{
		func() error { return m.version() },
		func() error { return m.chain(c.On) },
		func() error { return m.capabilities() },
		func() error { r.From, err = w.from(c.Request, c.On, m); return err },
		func() error { r.Key, err = bundleID(c, m); return err },
		func() error { atomic, err = m.flag("atomicRequired"); return err },
		func() error { r.Calls, err = m.bundled(); return err },
		m.done,
	} {
		if err := read(); err != nil {
			return r, err
		}
	}
	switch one := !w.Atomic(c.On); {
	case one && atomic:
		return r, &jsonrpc.Error{Code: codeNotAtomic, Message: fmt.Sprintf("chain %s has no atomic calls", c.On)}
	case one && len(r.Calls) > 1:
		return r, &jsonrpc.Error{Code: codeTooManyCalls, Message: fmt.Sprintf("chain %s takes one call at a time", c.On)}
	}
	return r, nil
}

func (m members) version() error {
	text, _, err := m.text("version")
	if err == nil && !slices.Contains(versions(), text) {
		err = m.wrong("version", "must be "+version)
	}
	return err
}

func (m members) chain(on chain.ID) error {
	id, err := m.number("chainId")
	switch {
	case err != nil:
		return err
	case id == nil:
		return m.wrong("chainId", "is missing")
	case !id.Eq(uint256.NewInt(uint64(on))):
		return &jsonrpc.Error{Code: codeUnsupportedChain, Message: fmt.Sprintf("this URL is for chain %s", on)}
	}
	return nil
}

// capabilities refuses capabilities that are not optional: there are none here that an application
// could ask for.
func (m members) capabilities() error {
	raw, ok := m.take("capabilities")
	if !ok {
		return nil
	}
	all, err := object(m.at+": capabilities", raw)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all.left)) {
		one, err := object(m.at+": capability "+rest.Quote(name), all.left[name])
		if err != nil {
			return err
		}
		optional, err := one.flag("optional")
		if err != nil {
			return err
		}
		if !optional {
			return &jsonrpc.Error{Code: codeCapability, Message: "the capability " + rest.Quote(name) + " is not supported"}
		}
	}
	return nil
}

// bundled reads the calls of wallet_sendCalls.
func (m members) bundled() ([]intent.Call, error) {
	raw := m.left["calls"]
	if len(raw) > 0 && raw[0] == '[' && rest.CountElements(raw, intent.CallsMax) > intent.CallsMax {
		return nil, &jsonrpc.Error{Code: codeTooManyCalls, Message: fmt.Sprintf("at most %d calls are carried out together", intent.CallsMax)}
	}
	items, err := m.list("calls", intent.CallsMax)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, m.wrong("calls", "has no call")
	}
	return readCalls(items)
}

// bundleID reads the id of the calls, which is the idempotency key. Without one, the calls may repeat
// an earlier request, as a transaction may.
func bundleID(c jsonrpc.Call, m members) (string, error) {
	id, given, err := m.text("id")
	switch {
	case err != nil:
		return "", err
	case given && id == "":
		return "", m.wrong("id", "is empty")
	case given && len(c.IdempotencyKeys) == 0:
		return id, nil
	}
	other, err := key(c, members{at: m.at})
	if err == nil && given && other != id {
		err = invalid("the header Idempotency-Key and the id differ")
	}
	return other, err
}

// receipt is a receipt in an answer of wallet_getCallsStatus. Source: EIP-5792.
type receipt struct {
	Logs            json.RawMessage `json:"logs"`
	Status          json.RawMessage `json:"status"`
	BlockHash       json.RawMessage `json:"blockHash"`
	BlockNumber     json.RawMessage `json:"blockNumber"`
	GasUsed         json.RawMessage `json:"gasUsed"`
	TransactionHash json.RawMessage `json:"transactionHash"`
}

// status is the answer to wallet_getCallsStatus.
type status struct {
	Version  string    `json:"version"`
	ID       string    `json:"id"`
	ChainID  string    `json:"chainId"`
	Status   int       `json:"status"`
	Atomic   bool      `json:"atomic"`
	Receipts []receipt `json:"receipts,omitempty"`
}

// Codes of status. Source: EIP-5792.
const (
	statusPending   = 100
	statusConfirmed = 200
	statusNotSent   = 400 // no block contains the calls, and none will
	statusReverted  = 500
)

// callsStatus answers wallet_getCallsStatus.
func (w *wallets) callsStatus(ctx context.Context, c jsonrpc.Call) (any, error) {
	state, err := w.calls(ctx, c)
	if err != nil {
		return nil, err
	}
	out := status{
		Version: version, ID: state.Requested.Request.Key, ChainID: "0x" + strconv.FormatUint(uint64(c.On), 16), Status: statusPending, Atomic: true,
	}
	switch {
	case state.Landed():
		raw, err := c.Node(ctx, "eth_getTransactionReceipt", state.Mined)
		if err != nil {
			return nil, err
		}
		var r *receipt
		if err := json.Unmarshal(raw, &r); err != nil || r == nil {
			return out, nil // the node is behind, or the block has left the chain
		}
		if out.Receipts, out.Status = []receipt{*r}, statusConfirmed; state.Receipt.Status == 0 {
			out.Status = statusReverted
		}
	case state.End != nil:
		out.Status = statusNotSent
	}
	return out, nil
}

// showCallsStatus answers wallet_showCallsStatus. There is nobody here to show anything to.
func (w *wallets) showCallsStatus(ctx context.Context, c jsonrpc.Call) (any, error) {
	_, err := w.calls(ctx, c)
	return nil, err
}

// catchUp bounds how long a call waits for the read model.
const catchUp = 3 * time.Second

// calls returns the client's newest intent on the chain with the id in the parameters.
func (w *wallets) calls(ctx context.Context, c jsonrpc.Call) (s intent.State, err error) {
	if len(c.Params) != 1 {
		return s, invalid("want one argument, the id of calls")
	}
	id, _, err := members{"the argument", map[string]json.RawMessage{"id": c.Params[0]}}.text("id")
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, w.Work)
	defer cancel()
	row, ok, err := w.byKey(ctx, c, id)
	if err == nil && !ok { // it may have been accepted a moment ago, by another replica
		if err = w.caughtUp(ctx, c); err == nil {
			row, ok, err = w.byKey(ctx, c, id)
		}
	}
	switch {
	case err != nil:
		return s, err
	case !ok:
		return s, &jsonrpc.Error{Code: codeUnknownID, Message: "no calls have this id"}
	}
	a := w.Intake.Desk.Get(ctx, c.Client, row.State.Requested.ID)
	c.Weigh(a.Read)
	return a.State, a.Err
}

// byKey finds the client's newest intent with a key in the read model.
func (w *wallets) byKey(ctx context.Context, c jsonrpc.Call, key string) (row intents.Row, ok bool, err error) {
	if key == "" {
		return row, false, nil
	}
	f := intents.Filters{Client: &c.Client, Chain: c.On, Key: key}
	rows, err := rest.Placed(ctx, c.List, func(ctx context.Context) ([]intents.Row, error) {
		rows, _, err := w.Query.Step(ctx, f, 0, 1)
		return rows, err
	})
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}

// caughtUp waits until the read model contains all events that were recorded before the call.
func (w *wallets) caughtUp(ctx context.Context, c jsonrpc.Call) error {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	head, err := rest.Placed(ctx, c.List, w.Intake.Desk.Intents.Store.Head)
	if err != nil {
		return err
	}
	return follower.Reached(ctx, head, func(ctx context.Context) (eventlog.Position, error) {
		return rest.Placed(ctx, c.List, w.Model)
	})
}

// capabilities answers wallet_getCapabilities.
func (w *wallets) capabilities(_ context.Context, c jsonrpc.Call) (any, error) {
	if len(c.Params) < 1 || len(c.Params) > 2 {
		return nil, invalid("want an account, and perhaps a list of chain ids")
	}
	m := members{"the arguments", map[string]json.RawMessage{"account": c.Params[0]}}
	if len(c.Params) == 2 {
		m.left["chains"] = c.Params[1]
	}
	account, err := m.address("account")
	switch {
	case err != nil:
		return nil, err
	case account == nil:
		return nil, m.wrong("account", "is missing")
	case !slices.Contains(w.usable(c.Request, c.On), *account):
		return nil, unauthorized(*account)
	}
	own := "0x" + strconv.FormatUint(uint64(c.On), 16)
	wanted, err := m.list("chains", membersMax)
	if err != nil {
		return nil, err
	}
	asked := wanted == nil
	for _, raw := range wanted {
		id, err := members{m.at, map[string]json.RawMessage{"chain": raw}}.number("chain")
		if err != nil {
			return nil, err
		}
		asked = asked || id != nil && id.Eq(uint256.NewInt(uint64(c.On)))
	}
	all := map[string]any{}
	if asked {
		word := "unsupported"
		if w.Atomic(c.On) {
			word = "supported"
		}
		all[own] = map[string]any{"atomic": map[string]string{"status": word}}
	}
	return all, nil
}
