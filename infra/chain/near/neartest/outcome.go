package neartest

import (
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// ran returns the block on a branch in which a transaction or a receipt ran: the first one, if there are two.
func (c *Chain) ran(id hash, tip *block) *block {
	for _, b := range c.found[id] {
		if tip.has(b) {
			return b
		}
	}
	return nil
}

// outcome returns a transaction's outcome as the node shows it, and its level of execution.
func (r *request) outcome(id hash) (shown any, level int, seen bool) {
	c, tip := r.node.chain, r.tip()
	b := c.ran(id, tip)
	if b == nil || r.faults.Forgets || b.height+c.options.Keep < tip.height {
		return nil, 0, false
	}
	of := b.outcomes[id]
	walk := &walk{chain: c, tip: tip}
	for _, made := range of.made {
		walk.visit(made)
	}
	status := of.status
	for {
		next, goes := status.(members)["SuccessReceiptId"]
		if !goes {
			break
		}
		target, _ := near.ParseHash(next.(string))
		at := c.ran(target, tip)
		if at == nil {
			status = "Started"
			break
		}
		status = at.outcomes[target].status
		if _, is := status.(members); !is {
			break
		}
	}
	level = walk.level(b)
	return members{
		"final_execution_status": levels[level], "status": status, "transaction": showTransaction(*of.transaction),
		"transaction_outcome": of.show(b), "receipts_outcome": walk.shown,
	}, level, true
}

// walk visits a transaction's receipts.
type walk struct {
	chain *Chain
	tip   *block
	shown []any

	waiting, refundsWaiting bool // receipts that did not run yet
	unfinal                 bool // a receipt ran in a block that is not final
}

func (w *walk) visit(id hash) {
	if w.shown == nil {
		w.shown = []any{}
	}
	b := w.chain.ran(id, w.tip)
	if b == nil {
		if w.refund(id) {
			w.refundsWaiting = true
		} else {
			w.waiting = true
		}
		return
	}
	if b.height > w.tip.final.height {
		w.unfinal = true
	}
	out := b.outcomes[id]
	w.shown = append(w.shown, out.show(b))
	for _, made := range out.made {
		w.visit(made)
	}
}

// refund reports whether a receipt that waits is a refund.
func (w *walk) refund(id hash) bool {
	for _, r := range w.tip.pending {
		if r.id == id {
			return r.predecessor == "system"
		}
	}
	return false
}

// level is the level of execution of a transaction that ran in a block (nearcore
// chain/client/src/view_client_actor.rs).
func (w *walk) level(b *block) int {
	final := b.height <= w.tip.final.height
	switch {
	case w.waiting && final:
		return 3 // INCLUDED_FINAL
	case w.waiting:
		return 1 // INCLUDED
	case !final:
		return 2 // EXECUTED_OPTIMISTIC
	case w.unfinal || w.refundsWaiting:
		return 4 // EXECUTED
	}
	return 5 // FINAL
}

func (o *outcome) show(b *block) any {
	made := []string{}
	for _, id := range o.made {
		made = append(made, near.HashText(id))
	}
	burnt := new(uint256.Int).Mul(uint256.NewInt(o.gas), uint256.NewInt(gasPrice))
	return members{
		"id": near.HashText(o.id), "block_hash": near.HashText(b.hash), "proof": []any{},
		"outcome": members{
			"status": o.status, "receipt_ids": made, "gas_burnt": o.gas, "tokens_burnt": burnt.Dec(), "executor_id": o.executor,
			"logs": append([]string{}, o.logs...), "metadata": members{"version": 1, "gas_profile": nil},
		},
	}
}
