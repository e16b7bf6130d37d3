package wallets

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// membersMax is the most members of a transaction, a call or another object. More are refused before
// they are decoded.
const membersMax = 64

// members are the members of an object. Members that are null count as left out.
type members struct {
	at   string // where the object is, for errors
	left map[string]json.RawMessage
}

// object reads an object. JSON with a repeated member was refused before.
func object(at string, text json.RawMessage) (m members, err error) {
	if len(text) == 0 || text[0] != '{' {
		return m, invalid("%s must be an object", at)
	}
	if rest.CountElements(text, membersMax) > membersMax {
		return m, invalid("%s has more than %d members", at, membersMax)
	}
	m.at = at
	if err := json.Unmarshal(text, &m.left); err != nil {
		return m, invalid("%s cannot be read", at)
	}
	maps.DeleteFunc(m.left, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return m, nil
}

// take returns a member, and removes it.
func (m members) take(name string) (text json.RawMessage, ok bool) {
	text, ok = m.left[name]
	delete(m.left, name)
	return text, ok
}

// done refuses members that were not taken. Ignoring them could change the effect of a transaction.
func (m members) done() error {
	for _, name := range slices.Sorted(maps.Keys(m.left)) {
		return m.wrong(name, "is not supported here")
	}
	return nil
}

func (m members) wrong(name, what string) error {
	return invalid("%s: member %s %s", m.at, rest.Quote(name), what)
}

// text reads a string; ok is false if it is left out. An empty string is not the same as none: the target
// of a call must not be lost.
func (m members) text(name string) (s string, ok bool, err error) {
	raw, ok := m.take(name)
	if ok && (raw[0] != '"' || json.Unmarshal(raw, &s) != nil) {
		return "", true, m.wrong(name, "must be a string")
	}
	return s, ok, nil
}

func (m members) address(name string) (*chain.Address, error) {
	text, ok, err := m.text(name)
	if err != nil || !ok {
		return nil, err
	}
	a, err := chain.ParseAddress(text)
	if err != nil {
		return nil, m.wrong(name, "is not an address: "+err.Error())
	}
	return &a, nil
}

// number reads a quantity; nil if it is left out. Source: execution-apis, "Hex value encoding"; leading
// zeros are accepted.
func (m members) number(name string) (*uint256.Int, error) {
	text, ok, err := m.text(name)
	if err != nil || !ok {
		return nil, err
	}
	const digitsMax = 64
	digits, prefixed := strings.CutPrefix(text, "0x")
	if digits = strings.TrimLeft(digits, "0"); !prefixed || len(text) < 3 || len(digits) > digitsMax {
		return nil, m.wrong(name, "must be a quantity below 2^256: 0x and hex digits")
	}
	n := new(uint256.Int)
	if digits == "" {
		return n, nil
	}
	if err := n.SetFromHex("0x" + strings.ToLower(digits)); err != nil {
		return nil, m.wrong(name, "must be a quantity below 2^256: 0x and hex digits")
	}
	return n, nil
}

func (m members) amount(name string) (intent.Amount, error) {
	n, err := m.number(name)
	return chain.AmountOf(n), err
}

func (m members) flag(name string) (set bool, err error) {
	raw, ok := m.take(name)
	if ok && json.Unmarshal(raw, &set) != nil {
		return false, m.wrong(name, "must be true or false")
	}
	return set, nil
}

// list reads the elements of a list, at most most.
func (m members) list(name string, most int) ([]json.RawMessage, error) {
	raw, ok := m.take(name)
	if !ok {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, m.wrong(name, "must be a list")
	}
	if rest.CountElements(raw, most) > most {
		return nil, m.wrong(name, fmt.Sprintf("has more than %d elements", most))
	}
	all := []json.RawMessage{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, m.wrong(name, "cannot be read")
	}
	return all, nil
}

// data reads the input of a call, which wallets name data, input or both.
func (m members) data() (intent.Data, error) {
	var found intent.Data
	seen := false
	for _, name := range []string{"data", "input"} {
		text, ok, err := m.text(name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		var d intent.Data
		if err := d.UnmarshalText([]byte(text)); err != nil {
			return nil, m.wrong(name, "must be 0x and an even number of hex digits")
		}
		if seen && string(d) != string(found) {
			return nil, invalid("%s: data and input differ", m.at)
		}
		found, seen = d, true
	}
	return found, nil
}

// call reads the target, value and input of a call.
func (m members) call() (c intent.Call, err error) {
	if c.To, err = m.address("to"); err != nil {
		return c, err
	}
	if c.Value, err = m.amount("value"); err != nil {
		return c, err
	}
	c.Data, err = m.data()
	return c, err
}

// transaction reads the parameter of eth_sendTransaction.
func (w *wallets) transaction(c jsonrpc.Call) (r intent.Request, err error) {
	if len(c.Params) != 1 {
		return r, invalid("want one argument, the transaction")
	}
	m, err := object("the transaction", c.Params[0])
	if err != nil {
		return r, err
	}
	r.Client, r.Chain = c.Client, c.On
	for _, read := range []func() error{
		func() error { return m.passOver(c.On) },
		func() error { r.From, err = w.from(c.Request, c.On, m); return err },
		func() error { r.Calls, err = m.calls(); return err },
		func() error { r.Gas, err = m.gas(w.LeastTip(c.On)); return err },
		func() error { r.NonceKey, err = m.nonceKey(); return err },
		func() error { r.Key, err = key(c, m); return err },
		m.done,
	} {
		if err := read(); err != nil {
			return r, err
		}
	}
	if c.Pool != "" {
		r.Gas.Limit = 0 // it was estimated for another account, perhaps
	}
	return r, nil
}

// passOver reads the members that the relay decides by itself: the nonce and the type.
func (m members) passOver(on chain.ID) error {
	if _, err := m.number("nonce"); err != nil {
		return err
	}
	id, err := m.number("chainId")
	if err != nil {
		return err
	}
	if id != nil && !id.Eq(uint256.NewInt(uint64(on))) {
		return m.wrong("chainId", fmt.Sprintf("is not %d, the chain of the path", uint64(on)))
	}
	kind, err := m.number("type")
	if err != nil {
		return err
	}
	if kind != nil && (!kind.IsUint64() || !slices.Contains([]uint64{0, 1, 2, 0x76}, kind.Uint64())) {
		return m.wrong("type", "is of a transaction that the relay does not make")
	}
	entries, err := m.list("accessList", 0)
	if err == nil && len(entries) > 0 {
		err = m.wrong("accessList", "is not supported here")
	}
	return err
}

// from reads the account. On a pool's path it may be any account of the pool, or be left out: the pool
// signs.
func (w *wallets) from(r rpcroute.Request, on chain.ID, m members) (intent.From, error) {
	from, err := m.address("from")
	switch {
	case err != nil:
		return intent.From{}, err
	case from == nil && r.Pool == "":
		return intent.From{}, m.wrong("from", "is missing; only the path of a pool needs none")
	case from != nil && !slices.Contains(w.usable(r, on), *from):
		return intent.From{}, unauthorized(*from)
	case r.Pool != "":
		return intent.From{Pool: r.Pool}, nil
	}
	return intent.From{Signer: from}, nil
}

func unauthorized(a chain.Address) error {
	return &jsonrpc.Error{Code: codeUnauthorized, Message: fmt.Sprintf("the account %s is not one of those that eth_accounts lists", a)}
}

// calls reads the calls, or the one call of a plain transaction.
func (m members) calls() ([]intent.Call, error) {
	plain, err := m.call()
	if err != nil {
		return nil, err
	}
	items, err := m.list("calls", intent.CallsMax)
	switch {
	case err != nil:
		return nil, err
	case len(items) == 0: // cast sends an empty list beside the one call
		return []intent.Call{plain}, nil
	case plain.To != nil || !plain.Value.IsZero() || plain.Data != nil:
		return nil, invalid("%s has calls and also to, value or data", m.at)
	}
	return readCalls(items)
}

// readCalls reads the calls of a list.
func readCalls(items []json.RawMessage) ([]intent.Call, error) {
	calls := []intent.Call{}
	for i, item := range items {
		one, err := object(fmt.Sprintf("call %d", i), item)
		if err != nil {
			return nil, err
		}
		if err := one.capabilities(); err != nil {
			return nil, err
		}
		call, err := one.call()
		if err == nil {
			err = one.done()
		}
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// gas reads the limits of the transaction's cost.
func (m members) gas(leastTip intent.Amount) (g intent.Gas, err error) {
	if g.Limit, err = m.gasLimit(); err != nil {
		return g, err
	}
	if g.MaxFee, err = m.maxFee(); err != nil {
		return g, err
	}
	tip, err := m.number("maxPriorityFeePerGas")
	if err != nil {
		return g, err
	}
	// Some wallets estimate tips of next to nothing on quiet chains. No transaction of the relay offers less
	// than leastTip, and could be replaced only by a higher tip. So a lower tip is no ceiling.
	if given := chain.AmountOf(tip); given.Cmp(leastTip) >= 0 {
		g.MaxPriorityFee = given
	}
	if g.FeeToken, err = m.address("feeToken"); err != nil {
		return g, err
	}
	g.Sponsored, err = m.flag("feePayer")
	return g, err
}

func (m members) gasLimit() (limit uint64, err error) {
	for _, name := range []string{"gas", "gasLimit"} { // the second is some wallets' name
		n, err := m.number(name)
		switch {
		case err != nil:
			return 0, err
		case n == nil:
		case !n.IsUint64() || n.Uint64() > intent.GasLimitMax:
			return 0, m.wrong(name, fmt.Sprintf("is above %d", uint64(intent.GasLimitMax)))
		case limit != 0 && limit != n.Uint64():
			return 0, invalid("%s: gas and gasLimit differ", m.at)
		default:
			limit = n.Uint64()
		}
	}
	return limit, nil
}

// maxFee reads the highest price per unit of gas.
func (m members) maxFee() (most intent.Amount, err error) {
	for _, name := range []string{"gasPrice", "maxFeePerGas"} {
		n, err := m.number(name)
		switch {
		case err != nil:
			return most, err
		case n == nil:
		case n.IsZero():
			return most, m.wrong(name, "is 0: leave it out to let the relay choose")
		case !most.IsZero() && most != chain.AmountOf(n):
			return most, invalid("%s: gasPrice and maxFeePerGas differ", m.at)
		default:
			most = chain.AmountOf(n)
		}
	}
	return most, nil
}

// nonceKey reads Tempo's nonce key; left out, the relay chooses.
func (m members) nonceKey() (p intent.NoncePolicy, err error) {
	n, err := m.number("nonceKey")
	switch {
	case err != nil || n == nil:
	case n.IsZero():
		p.Mode = intent.NonceProtocol
	default:
		key := chain.NonceKey(n.Bytes32())
		p.Mode, p.Key = intent.NonceFixed, &key
	}
	return p, err
}

// key reads the idempotency key: the member, or the request's header. A header of a batch would name
// several transactions.
func key(c jsonrpc.Call, m members) (key string, err error) {
	key, given, err := m.text("idempotencyKey")
	if err != nil {
		return "", err
	}
	switch all := c.IdempotencyKeys; {
	case given && key == "":
		return "", m.wrong("idempotencyKey", "is empty")
	case len(all) == 0:
		return key, nil
	case c.Batch:
		return "", invalid("the header Idempotency-Key cannot name a call of a batch: give each call the member idempotencyKey")
	case len(all) > 1 || all[0] == "":
		return "", invalid("the header Idempotency-Key must be one key")
	case given && key != all[0]:
		return "", invalid("the header Idempotency-Key and the member idempotencyKey differ")
	}
	return c.IdempotencyKeys[0], nil
}
