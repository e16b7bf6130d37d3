package neartest

import (
	"encoding/base64"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// outcome is what a transaction or a receipt came to in a block.
type outcome struct {
	id       hash
	executor string
	status   any // SuccessReceiptId, SuccessValue or Failure
	made     []hash
	gas      uint64
	logs     []string
	// transaction, if it is a transaction's.
	transaction *near.Signed
}

// receipt is a list of actions on its way to an account.
type receipt struct {
	id          hash
	transaction hash
	predecessor string // "system" for refunds
	receiver    string
	signer      string // who gets gas back
	actions     []near.Action
	gas         uint64 // attached
	callback    any    // for a further receipt of a contract: its error; see [Chain.SetPromise]
	isCallback  bool
	after       int // blocks before it may run
}

func failure(kind string, what any) any { return members{"Failure": members{kind: what}} }

func actionFailure(index int, kind any) any {
	return failure("ActionError", members{"index": index, "kind": kind})
}

// fill makes a block's chunks, and runs what is due in it.
func (c *Chain) fill(b *block) {
	waiting := b.parent.pending
	for shard := range c.options.Shards {
		if c.stalled[shard] {
			b.chunks = append(b.chunks, b.parent.chunks[shard])
			continue
		}
		b.chunks = append(b.chunks, chunk{hash: idOf("chunk", b.hash, uint64(shard)), shard: shard, created: b.height})
		for _, s := range c.draw(shard, b.height) {
			c.transact(b, shard, s)
		}
	}
	for _, r := range waiting {
		shard := c.shardOf(r.receiver)
		if r.after > 0 || c.stalled[shard] {
			later := *r
			later.after = max(r.after-1, 0)
			b.pending = append(b.pending, &later)
			continue
		}
		b.chunks[shard].receipts = append(b.chunks[shard].receipts, r)
		c.run(b, r)
	}
}

// transact runs a transaction's first stage: its nonce and its cost are taken, and it makes one receipt.
func (c *Chain) transact(b *block, shard int, s near.Signed) {
	id := s.Hash()
	if _, again := b.outcomes[id]; again {
		return
	}
	bad := c.base(s, b.parent, func(hash) bool { return true })
	if bad == nil {
		bad = c.congestion(s)
	}
	if bad == nil {
		bad = c.bytesInvalid(s)
	}
	if bad != nil {
		return
	}
	if bad = c.stateInvalid(s, b.state, b.height); bad != nil {
		switch {
		case c.early(s, b):
			c.putBack(shard, b.height+1, s)
		case c.include:
			b.outcomes[id] = &outcome{id: id, executor: s.Signer, status: failure("InvalidTxError", bad), transaction: &s}
			b.chunks[shard].transactions = append(b.chunks[shard].transactions, s)
		}
		return
	}
	b.chunks[shard].transactions = append(b.chunks[shard].transactions, s)
	out := &outcome{id: id, executor: s.Signer, gas: feeOfOne, transaction: &s}
	b.outcomes[id] = out
	if bad := c.charge(b, s, id); bad != nil {
		out.status = failure("InvalidTxError", bad)
		return
	}
	r := &receipt{
		id: idOf("receipt", id, b.height), transaction: id, predecessor: s.Signer, receiver: s.Receiver, signer: s.Signer,
		actions: s.Actions, after: c.delay,
	}
	out.made, out.status = []hash{r.id}, members{"SuccessReceiptId": near.HashText(r.id)}
	if s.Signer == s.Receiver && r.after == 0 {
		c.run(b, r) // a receipt to oneself stays in the chunk
		return
	}
	b.pending = append(b.pending, r)
}

// early reports whether a strict nonce waits for the ones before it.
func (c *Chain) early(s near.Signed, b *block) bool {
	signer := b.state.get(s.Signer)
	if signer == nil || !s.Strict {
		return false
	}
	nonce, bad := nonceOf(s, signer.keys[s.Key])
	base := c.byHash[s.Block]
	return bad == nil && s.Nonce.Value > nonce+1 && b.height-base.height <= strictWait
}

// charge takes a transaction's cost and moves the nonce. Its error is that of a gas key whose account cannot
// pay the deposit: then the nonce is used, and gas is burnt.
func (c *Chain) charge(b *block, s near.Signed, id hash) invalid {
	signer := b.state.touch(s.Signer)
	key := signer.keys[s.Key]
	deposit, gas, _ := cost(s)
	defer func() { signer.keys[s.Key] = key }()
	b.changes = append(b.changes, change{account: s.Signer, key: s.Key, cause: "transaction_processing", by: id, nonce: s.Nonce.Value})
	if s.Nonce.Index == nil {
		key.nonce = s.Nonce.Value
		total := new(uint256.Int).Add(&deposit, &gas)
		signer.balance.Sub(&signer.balance, total)
		key.spent.Add(&key.spent, &gas)
		return nil
	}
	key.nonces = append([]uint64{}, key.nonces...)
	key.nonces[*s.Nonce.Index] = s.Nonce.Value
	key.balance.Sub(&key.balance, &gas)
	if signer.balance.Lt(&deposit) {
		return members{"NotEnoughBalanceForDeposit": members{"signer_id": s.Signer, "balance": signer.balance.Dec(), "cost": deposit.Dec(), "reason": "NotEnoughBalance"}}
	}
	signer.balance.Sub(&signer.balance, &deposit)
	return nil
}

// run runs a receipt: all of its actions, or none.
func (c *Chain) run(b *block, r *receipt) {
	out := &outcome{id: r.id, executor: r.receiver, gas: feeOfOne}
	b.outcomes[r.id] = out
	if r.isCallback {
		out.status = members{"SuccessValue": ""}
		if r.callback != nil {
			out.status = actionFailure(0, r.callback)
		}
		return
	}
	x := &execution{chain: c, block: b, receipt: r, state: b.state.scratch(), actor: r.predecessor, value: ""}
	for i, action := range r.actions {
		if kind := x.apply(action); kind != nil {
			out.status = actionFailure(i, kind)
			x.refund(r.actions)
			break
		}
	}
	if out.status == nil {
		b.state.keep(x.state)
		b.changes = append(b.changes, x.changes...)
		out.status = members{"SuccessValue": base64.StdEncoding.EncodeToString([]byte(x.value))}
		if x.returned != nil {
			out.status = members{"SuccessReceiptId": near.HashText(x.returned.id)}
		}
	} else {
		x.made = x.refunds
	}
	for _, made := range x.made {
		out.made = append(out.made, made.id)
		made.after = c.delay
		b.pending = append(b.pending, made)
	}
}

// execution is one receipt's run on a copy of the state.
type execution struct {
	chain   *Chain
	block   *block
	receipt *receipt
	state   *state
	actor   string // whose permissions the actions have
	value   string
	changes []change

	made, refunds []*receipt
	returned      *receipt // the receipt whose value is this one's
}

// send makes a further receipt.
func (x *execution) send(to string, from string, actions ...near.Action) *receipt {
	r := &receipt{
		id: idOf("receipt", x.receipt.id, uint64(len(x.made)+len(x.refunds))), transaction: x.receipt.transaction,
		predecessor: from, receiver: to, signer: x.receipt.signer, actions: actions,
	}
	return r
}

// refund returns the deposits of a failed receipt to its predecessor.
func (x *execution) refund(actions []near.Action) {
	var sum uint256.Int
	for _, action := range actions {
		switch a := action.(type) {
		case near.Transfer:
			sum.Add(&sum, &a.Deposit)
		case near.FunctionCall:
			sum.Add(&sum, &a.Deposit)
		case near.StateInit:
			sum.Add(&sum, &a.Deposit)
		}
	}
	if !sum.IsZero() && x.receipt.predecessor != "system" {
		x.refunds = append(x.refunds, x.send(x.receipt.predecessor, "system", near.Transfer{Deposit: sum}))
	}
}
