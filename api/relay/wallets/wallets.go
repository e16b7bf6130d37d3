// Package wallets makes the relay a wallet's node: it answers the JSON-RPC methods by which wallets ask
// their node for an account and for a signature. Applications change the URL alone.
//
// A transaction that is sent here becomes an intent. Package
// jsonrpc reads the calls, and answers all other methods. The relay signs nothing that a client hands in:
// it takes no signed bytes, no messages and no typed data.
//
// Of the packages of api it imports rest, rpcroute and jsonrpc. docs/howto/wallets.md describes it for
// applications, docs/reference/relayer.md lists the methods.
package wallets

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// Config holds the settings and dependencies of the methods.
type Config struct {
	// Intake accepts the intents.
	Intake *intake.Repeats
	// Query reads the rows of the read model. Model returns the position up to which it contains
	// all events.
	Query intents.Query
	Model func(context.Context) (eventlog.Position, error)
	// Tail is where calls wait for new events.
	Tail *tail.Tail
	// Signers returns the accounts that may sign on a chain. Pool returns the accounts of a pool, none
	// if the pool does not exist.
	Signers func(chain.ID) []chain.Address
	Pool    func(id chain.ID, name string) []chain.Address
	// Atomic reports whether a chain carries out several calls in one transaction.
	Atomic func(chain.ID) bool
	// LeastTip is the least tip per unit of gas that a transaction offers on a chain.
	LeastTip func(chain.ID) intent.Amount
	// Wait is how long a call waits for an intent's first hash. Work bounds the rest of a call.
	Wait, Work time.Duration
}

// wallets is the configuration. The methods are its methods.
type wallets struct{ Config }

// Extend adds the methods to a configuration of JSON-RPC.
func Extend(to *jsonrpc.Config, c Config) {
	if c.Intake == nil || c.Tail == nil || min(c.Wait, c.Work) <= 0 {
		panic("wallets: the intake, the tail or a limit is missing")
	}
	w := &wallets{c}
	to.Admit, to.SentAs, to.Show, to.Methods = w.admit, w.sentAs, plain, map[string]jsonrpc.Method{
		"eth_accounts":           w.accounts,
		"eth_requestAccounts":    w.accounts,
		"eth_sendTransaction":    w.sendTransaction,
		"wallet_sendTransaction": w.sendTransaction,
		"wallet_sendCalls":       w.sendCalls,
		"wallet_getCallsStatus":  w.callsStatus,
		"wallet_showCallsStatus": w.showCallsStatus,
		"wallet_getCapabilities": w.capabilities,
	}
	for _, name := range SignedElsewhere() {
		to.Methods[name] = func(context.Context, jsonrpc.Call) (any, error) {
			return nil, &jsonrpc.Error{
				Code:    jsonrpc.CodeUnknownMethod,
				Message: name + " is not available: signed transactions are delivered by the delivery API's listener, POST /rpc/{chainId} at the address of the setting listen; here eth_sendTransaction takes transactions that are not signed",
			}
		}
	}
	for _, name := range NeverSigned() {
		to.Methods[name] = func(context.Context, jsonrpc.Call) (any, error) {
			return nil, &jsonrpc.Error{
				Code:    jsonrpc.CodeUnknownMethod,
				Message: name + " is not available: the relay signs nothing that clients hand in, only transactions that it makes itself for eth_sendTransaction and wallet_sendCalls",
			}
		}
	}
}

// SignedElsewhere lists the methods for signed transactions, which the delivery API answers.
func SignedElsewhere() []string {
	return []string{"eth_sendRawTransaction", "eth_sendRawTransactionSync"}
}

// NeverSigned lists the methods that ask for a signature of something that the client hands in.
func NeverSigned() []string {
	return []string{
		"eth_sign", "eth_signTransaction", "eth_signTypedData", "eth_signTypedData_v1", "eth_signTypedData_v3", "eth_signTypedData_v4",
		"personal_sendTransaction", "personal_sign", "personal_signTransaction",
	}
}

// Codes of providers' errors. Sources: EIP-1193 for codeUnauthorized; EIP-5792 for the others.
const (
	codeUnauthorized     = 4100
	codeCapability       = 5700
	codeUnsupportedChain = 5710
	codeDuplicateID      = 5720
	codeUnknownID        = 5730
	codeTooManyCalls     = 5740
	codeNotAtomic        = 5760
)

// admit refuses a path with a pool that does not exist, or that the key may not use. The answer is the
// same for both.
func (w *wallets) admit(r rpcroute.Request, id chain.ID) error {
	if r.Pool == "" || mayUsePool(r, r.Pool) && len(w.Pool(id, r.Pool)) > 0 {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeNotFound, Message: "the pool of this path is not served here, or not for this key"}
}

func mayUsePool(r rpcroute.Request, name string) bool {
	key, keyed := r.Key()
	return !keyed || key.UsesPool(name)
}

// usable lists the accounts from which a request may send: the accounts of the path's pool, or the
// signers of the chain that the key may name.
func (w *wallets) usable(r rpcroute.Request, id chain.ID) []chain.Address {
	if r.Pool != "" {
		return w.Pool(id, r.Pool)
	}
	key, keyed := r.Key()
	return slices.DeleteFunc(slices.Clone(w.Signers(id)), func(a chain.Address) bool { return keyed && !key.UsesSigner(a) })
}

// accounts answers eth_accounts and eth_requestAccounts.
func (w *wallets) accounts(_ context.Context, c jsonrpc.Call) (any, error) {
	if len(c.Params) > 0 {
		return nil, invalid("too many arguments, want at most 0")
	}
	return append([]chain.Address{}, w.usable(c.Request, c.On)...), nil
}

// maySubmit refuses a key without the scope submit: the scope rpc alone is enough for delivery, where
// the client itself has signed.
func maySubmit(r rpcroute.Request) error {
	if key, keyed := r.Key(); keyed && !key.May(access.Submit) {
		return &jsonrpc.Error{Code: codeUnauthorized, Message: "the key lacks the scope submit, which transactions that the relay signs need", Data: r.Problem(rest.ErrForbidden)}
	}
	return nil
}

// sentAs returns the attempt that landed of the client's intent that has an attempt with this hash.
func (w *wallets) sentAs(ctx context.Context, r rpcroute.Request, id chain.ID, hash chain.Hash) (sent chain.Hash, ok bool, err error) {
	rows, err := rest.Placed(ctx, r.List, func(ctx context.Context) ([]intents.Row, error) { return w.Query.ByHash(ctx, hash) })
	if err != nil {
		return sent, false, err
	}
	for _, row := range rows {
		if of := row.Request(); of.Client == r.Client && of.Chain == id && row.State.Landed() {
			return row.State.Mined, true, nil
		}
	}
	return sent, false, nil
}

// plain adds the members to, value and input of Ethereum's own types to a transaction of Tempo's type,
// from its first call. ethers 6 reads no transaction without a value.
func plain(transaction json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(transaction, &all) != nil || all["calls"] == nil || all["value"] != nil {
		return transaction
	}
	var calls []map[string]json.RawMessage
	if json.Unmarshal(all["calls"], &calls) != nil || len(calls) == 0 {
		return transaction
	}
	all["to"], all["value"], all["input"] = json.RawMessage("null"), json.RawMessage(`"0x0"`), json.RawMessage(`"0x"`)
	for _, name := range []string{"to", "value", "input"} {
		if value := calls[0][name]; value != nil && string(value) != "null" {
			all[name] = value
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return transaction
	}
	return text
}

// invalid refuses a parameter.
func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// refused returns the error for a refusal of the intake. Its message has the reason, for most wallets
// show nothing else.
func refused(r rpcroute.Request, err error) error {
	p := r.Problem(err)
	message := p.Title
	if p.Detail != "" {
		message += ": " + p.Detail
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: message, Data: p}
}
