package jsonrpc

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// sendRawTransaction accepts a transaction like POST /v1/transactions, and returns its hash
// once it is durable.
func (s *server) sendRawTransaction(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	if f := arguments(c, 1, 1); f != nil {
		return nil, f
	}
	state, f := s.submit(ctx, x, c.params[0])
	if f != nil {
		return nil, f
	}
	return jsonOf(state.Accepted.Hash), nil
}

// submit accepts the transaction in a parameter. A known transaction that has ended without
// being executed is refused as a node would refuse it.
func (s *server) submit(ctx context.Context, x *exchange, param json.RawMessage) (tx.State, *failure) {
	raw, f := s.rawOf(param)
	if f != nil {
		s.submitted("refused")
		return tx.State{}, f
	}
	ctx, cancel := context.WithTimeout(ctx, s.Limits.CallTimeout)
	defer cancel()
	answers, err := x.submit.Batch(ctx, x.chain, [][]byte{raw}, commands.From(x.client), x.meta)
	if err == nil {
		err = answers[0].Err
	}
	switch {
	case err != nil && commands.IsRefusal(err):
		s.submitted("refused")
		return tx.State{}, x.failureOf(err)
	case err != nil:
		s.submitted("failed")
		return tx.State{}, x.failureOf(err)
	case answers[0].Known:
		s.submitted("known")
	default:
		s.submitted("accepted")
	}
	return answers[0].State, over(answers[0].State)
}

func (s *server) submitted(outcome string) {
	if s.Submitted != nil {
		s.Submitted(outcome)
	}
}

// rawOf reads 0x and hex digits. Its errors use go-ethereum's wording.
func (s *server) rawOf(param json.RawMessage) ([]byte, *failure) {
	wrong := func(what string) *failure {
		return invalidParams("invalid argument 0: %s", what)
	}
	text, ok := stringOf(param)
	switch {
	case !ok:
		return nil, wrong("must be a string")
	case !strings.HasPrefix(text, "0x"):
		return nil, wrong("hex string without 0x prefix")
	case len(text)%2 != 0:
		return nil, wrong("hex string of odd length")
	case len(text)/2-1 > s.Limits.TransactionBytes:
		return nil, &failure{code: codeServer, message: fmt.Sprintf("oversized data: transaction size %d, limit %d", len(text)/2-1, s.Limits.TransactionBytes)}
	}
	raw, err := hex.DecodeString(text[2:])
	switch {
	case err != nil:
		return nil, wrong("invalid hex string")
	case len(raw) == 0:
		return nil, &failure{code: codeServer, message: "typed transaction too short"}
	}
	return raw, nil
}

// over returns why a transaction will not be mined any more; nil while it may be, and if it
// was.
func over(s tx.State) *failure {
	message := ""
	switch s.Status {
	case tx.StatusStale:
		message = "nonce too low: another transaction with this nonce was mined"
	case tx.StatusExpired:
		message = "transaction expired: its window has closed"
	case tx.StatusInvalid:
		message = "invalid transaction: every node refuses it permanently"
	case tx.StatusCanceled:
		message = "transaction canceled by its owner"
	default:
		return nil
	}
	return &failure{code: codeServer, message: message, data: map[string]any{"txHash": s.Accepted.Hash, "status": s.Status}}
}

// The time between two requests for the receipt of a mined transaction doubles from receiptPause
// to receiptPauseMax.
const (
	receiptPause    = 100 * time.Millisecond
	receiptPauseMax = 2 * time.Second
)

// sendRawTransactionSync accepts a transaction and waits for its receipt. The second parameter
// is the timeout in milliseconds; without it SyncDefault applies. Source: EIP-7966. The service
// keeps a transaction behind a nonce gap and waits for it, so the EIP's errors for rejected
// transactions never occur.
func (s *server) sendRawTransactionSync(ctx context.Context, x *exchange, c call) (json.RawMessage, *failure) {
	if f := arguments(c, 1, 2); f != nil {
		return nil, f
	}
	wait := s.Limits.SyncDefault
	if len(c.params) == 2 {
		asked, ok := milliseconds(c.params[1])
		if !ok {
			return nil, invalidParams("invalid argument 1: the timeout is a number of milliseconds")
		}
		if asked > 0 {
			wait = min(asked, s.Limits.SyncMax)
		}
	}
	state, f := s.submit(ctx, x, c.params[0])
	if f != nil {
		return nil, f
	}
	hash := state.Accepted.Hash
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	leave, room := x.rest()
	defer leave()
	var err error
	switch done := func(s tx.State) bool { return s.Status == tx.StatusExecuted || over(s) != nil }; {
	case room:
		state, err = s.Await(waiting, x.chain, hash, done)
	case !done(state):
		err = tail.ErrTooManyWaiters
	}
	if f := over(state); err == nil && f != nil {
		return nil, f
	}
	if err == nil {
		if receipt, ok := s.receipt(waiting, x, hash); ok {
			return receipt, nil
		}
	}
	message := fmt.Sprintf("The transaction was accepted and its delivery continues, but it was not mined within %v", wait)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		message = "The transaction was accepted and its delivery continues, but this replica cannot wait for it any longer"
	}
	return nil, &failure{code: codeStillWaiting, message: message, data: hash}
}

// receipt requests the receipt of a mined transaction until a node has it, or the client cannot pay
// for another round.
func (s *server) receipt(ctx context.Context, x *exchange, hash chain.Hash) (json.RawMessage, bool) {
	c := call{method: "eth_getTransactionReceipt", params: []json.RawMessage{jsonOf(hash)}}
	for wait := receiptPause; ; wait = min(2*wait, receiptPauseMax) {
		result, f := s.ask(ctx, x, c, isSomething)
		if f == nil && isSomething(result) {
			return result, true
		}
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil, false
		case <-pause.C:
		}
		if !x.again() {
			return nil, false
		}
	}
}

func isSomething(result json.RawMessage) bool { return string(result) != null }

// milliseconds reads a whole number: decimal as in EIP-7966, or a quantity. null is 0.
func milliseconds(param json.RawMessage) (time.Duration, bool) {
	text := string(param)
	if text == null {
		return 0, true
	}
	base := 10
	if quoted, ok := stringOf(param); ok {
		if !strings.HasPrefix(quoted, "0x") {
			return 0, false
		}
		text, base = quoted[2:], 16
	}
	n, err := strconv.ParseUint(text, base, 64)
	if errors.Is(err, strconv.ErrRange) {
		n, err = math.MaxUint64, nil
	}
	return time.Duration(min(n, uint64(math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond, err == nil
}
