package neartest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// levels are the levels of execution that a caller can wait for, in their order.
var levels = []string{"NONE", "INCLUDED", "EXECUTED_OPTIMISTIC", "INCLUDED_FINAL", "EXECUTED", "FINAL"}

// asked is what a call asks about: bytes, or a hash with the account that pays.
type asked struct {
	signed *near.Signed
	raw    []byte
	id     hash
	level  int
}

func (r *request) asked(level string) (a asked, err error) {
	var params struct {
		Signed string `json:"signed_tx_base64"`
		Hash   string `json:"tx_hash"`
		Sender string `json:"sender_account_id"`
		Wait   string `json:"wait_until"`
	}
	refuses := "Failed parsing args: the value could not decoded from borsh due to: %v"
	if list, is := r.list(); is {
		refuses = "Failed to decode transaction: %v"
		texts := make([]string, len(list))
		for i := range list {
			if json.Unmarshal(list[i], &texts[i]) != nil {
				return a, parseError("Failed parsing args: expected a string")
			}
		}
		switch len(texts) {
		case 1:
			params.Signed = texts[0]
		case 2:
			params.Hash, params.Sender = texts[0], texts[1]
		default:
			return a, parseError("Failed parsing args: expected one or two parameters")
		}
	} else if err := r.read(&params); err != nil {
		return a, err
	}
	if params.Wait != "" {
		level = params.Wait
	}
	if a.level = slices.Index(levels, level); a.level < 0 {
		return a, parseError("Failed parsing args: unknown variant `%s`", level)
	}
	if params.Signed == "" {
		if a.id, err = near.ParseHash(params.Hash); err != nil {
			return a, parseError("Failed parsing args: %v", err)
		}
		return a, nil
	}
	if a.raw, err = base64.StdEncoding.DecodeString(params.Signed); err != nil {
		return a, parseError("Failed parsing args: %v", err)
	}
	signed, err := near.Decode(a.raw)
	if err != nil {
		return a, parseError(refuses, err)
	}
	a.signed, a.id = &signed, signed.Hash()
	return a, nil
}

// received records bytes for judges.
func (r *request) received(a asked) {
	c := r.node.chain
	c.record.received = append(c.record.received, Delivery{r.node.Name, r.method, a.id, a.raw})
}

// sendAsync answers with the hash of whatever parses.
func (r *request) sendAsync() (any, error) {
	a, err := r.asked("NONE")
	if err != nil {
		return nil, err
	}
	if a.signed == nil {
		return nil, parseError("Failed parsing args: missing field `signed_tx_base64`")
	}
	c := r.node.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	r.received(a)
	r.forward(a)
	return near.HashText(a.id), nil
}

// forward hands a transaction to producers, if the node finds it valid or cannot tell.
func (r *request) forward(a asked) {
	c := r.node.chain
	if !r.faults.Untracked && r.invalid(a) != nil {
		return
	}
	c.forwards++
	if r.faults.Lost > 0 && c.random.Float64() < r.faults.Lost {
		return
	}
	c.pooled(*a.signed)
}

// invalid validates at the node's head, in a node's order.
func (r *request) invalid(a asked) invalid {
	c, tip := r.node.chain, r.tip()
	knows := func(id hash) bool { return c.byHash[id].height <= tip.height }
	if bad := c.base(*a.signed, tip, knows); bad != nil {
		return bad
	}
	if bad := c.congestion(*a.signed); bad != nil {
		return bad
	}
	if bad := c.bytesInvalid(*a.signed); bad != nil {
		return bad
	}
	if r.faults.Untracked {
		return nil
	}
	return c.stateInvalid(*a.signed, tip.state, 0)
}

func invalidTransaction(bad invalid) error {
	e := handlerError("INVALID_TRANSACTION", members{})
	e.data = members{"TxExecutionError": members{"InvalidTxError": bad}}
	return e
}

func (r *request) send() (any, error) {
	level := "EXECUTED_OPTIMISTIC"
	a, err := r.asked(level)
	if err != nil {
		return nil, err
	}
	if a.signed == nil {
		return nil, parseError("Failed parsing args: missing field `signed_tx_base64`")
	}
	c := r.node.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	r.received(a)
	if a.level == 0 {
		r.forward(a)
		return members{"final_execution_status": "NONE"}, nil
	}
	if bad := r.invalid(a); bad != nil {
		// A node looks whether these very bytes moved the nonce.
		if reason, is := bad.(members); is && reason["InvalidNonce"] != nil {
			if shown, _, seen := r.outcome(a.id); seen {
				return shown, nil
			}
		}
		return nil, invalidTransaction(bad)
	}
	r.forward(a)
	return r.waitFor(a)
}

// tx answers what became of a transaction.
func (r *request) tx() (any, error) {
	a, err := r.asked("EXECUTED_OPTIMISTIC")
	if err != nil {
		return nil, err
	}
	c := r.node.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.level > 0 {
		return r.waitFor(a)
	}
	if r.faults.Untracked {
		return members{"final_execution_status": "NONE"}, nil
	}
	shown, _, seen := r.outcome(a.id)
	switch {
	case seen:
		return shown, nil
	case r.inLostBlock(a.id):
		return members{"final_execution_status": "INCLUDED"}, nil
	case a.signed != nil:
		if bad := r.invalid(a); bad != nil {
			return nil, invalidTransaction(bad)
		}
	}
	return nil, unknownTransaction(a.id)
}

func unknownTransaction(id hash) error {
	return handlerError("UNKNOWN_TRANSACTION", members{"requested_transaction_hash": near.HashText(id)})
}

// inLostBlock reports whether a block that the node stored holds the transaction, though not on its branch.
func (r *request) inLostBlock(id hash) bool {
	return !r.faults.Forgets && len(r.node.chain.found[id]) > 0
}

// waitFor waits for a level of execution. The caller holds the chain's lock, which is free while it waits.
func (r *request) waitFor(a asked) (any, error) {
	c := r.node.chain
	over := time.NewTimer(c.options.Wait)
	defer over.Stop()
	for {
		if r.faults.Untracked {
			return nil, handlerError("DOES_NOT_TRACK_SHARD", members{})
		}
		shown, level, seen := r.outcome(a.id)
		if seen && level >= a.level {
			return shown, nil
		}
		if !seen && a.signed != nil {
			if bad := r.invalid(a); bad != nil {
				return nil, invalidTransaction(bad)
			}
		}
		moved := c.moved
		c.mu.Unlock()
		next := r.await(moved, over.C)
		c.mu.Lock()
		if !next {
			e := handlerError("TIMEOUT_ERROR", members{})
			e.status = http.StatusRequestTimeout
			return nil, e
		}
	}
}
