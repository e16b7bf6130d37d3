package neartest

import (
	"encoding/json"
	"net/http"
	"sort"
	"strconv"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

// reference is a block as calls name it.
type reference struct {
	Finality string          `json:"finality"`
	BlockID  json.RawMessage `json:"block_id"`
}

// find returns the block of a reference. Without one it is the final block.
func (r *request) find(ref reference) (*block, error) {
	tip := r.tip()
	if len(ref.BlockID) == 0 || string(ref.BlockID) == "null" {
		switch ref.Finality {
		case "", "final":
			return tip.final, nil
		case "near-final":
			return tip.near, nil
		case "optimistic":
			return tip, nil
		}
		return nil, parseError("Failed parsing args: unknown variant `%s`", ref.Finality)
	}
	var text string
	var found *block
	if json.Unmarshal(ref.BlockID, &text) == nil {
		id, err := near.ParseHash(text)
		if err != nil {
			return nil, parseError("Failed parsing args: %v", err)
		}
		if b := r.node.chain.byHash[id]; b != nil && b.height <= tip.height {
			found = b // a node knows blocks of branches that lost
		}
	} else {
		height, err := strconv.ParseUint(string(ref.BlockID), 10, 64)
		if err != nil {
			return nil, parseError("Failed parsing args: invalid block_id")
		}
		if found = tip.at(height); found == nil {
			unknown := handlerError("UNKNOWN_BLOCK", members{})
			if height < tip.height {
				unknown.status = http.StatusUnprocessableEntity
			}
			return nil, unknown
		}
	}
	switch {
	case found == nil:
		return nil, handlerError("UNKNOWN_BLOCK", members{})
	case found.height+r.node.chain.options.Keep < tip.height:
		return nil, handlerError("GARBAGE_COLLECTED_BLOCK", members{"block_height": found.height, "block_hash": near.HashText(found.hash)})
	}
	return found, nil
}

func (r *request) block() (any, error) {
	var ref reference
	if list, is := r.list(); is {
		if len(list) != 1 {
			return nil, parseError("Failed parsing args: expected one parameter")
		}
		ref.BlockID = list[0]
	} else if err := r.read(&ref); err != nil {
		return nil, err
	}
	r.node.chain.mu.Lock()
	defer r.node.chain.mu.Unlock()
	b, err := r.find(ref)
	if err != nil {
		return nil, err
	}
	chunks := []any{}
	mask := []bool{}
	for _, c := range b.chunks {
		chunks = append(chunks, members{
			"chunk_hash": near.HashText(c.hash), "shard_id": c.shard, "height_created": c.created, "height_included": c.created,
			"gas_used": 0, "gas_limit": 1_000_000_000_000_000, "signature": "ed25519:", "validator_proposals": []any{},
		})
		mask = append(mask, c.created == b.height)
	}
	return members{"author": "producer.near", "header": r.header(b, mask), "chunks": chunks}, nil
}

func (r *request) header(b *block, mask []bool) any {
	prev, prevHeight := hash{}, uint64(0)
	if b.parent != nil {
		prev, prevHeight = b.parent.hash, b.parent.height
	}
	return members{
		"height": b.height, "hash": near.HashText(b.hash), "prev_hash": near.HashText(prev), "prev_height": prevHeight,
		"timestamp": b.time, "timestamp_nanosec": strconv.FormatUint(b.time, 10),
		"last_final_block": near.HashText(b.final.hash), "last_ds_final_block": near.HashText(b.near.hash),
		"gas_price": strconv.Itoa(gasPrice), "chunk_mask": mask, "latest_protocol_version": r.node.chain.options.Protocol,
		"epoch_id": near.HashText(idOf("epoch", hash{}, b.height/43_200)), "chunks_included": len(mask),
	}
}

func (r *request) chunk() (any, error) {
	var asked struct {
		ChunkID string          `json:"chunk_id"`
		BlockID json.RawMessage `json:"block_id"`
		Shard   *int            `json:"shard_id"`
	}
	if err := r.read(&asked); err != nil {
		return nil, err
	}
	r.node.chain.mu.Lock()
	defer r.node.chain.mu.Unlock()
	if asked.ChunkID != "" {
		for b := r.tip(); b != nil; b = b.parent {
			for _, c := range b.chunks {
				if near.HashText(c.hash) == asked.ChunkID {
					return r.showChunk(c), nil
				}
			}
		}
		return nil, handlerError("UNKNOWN_CHUNK", members{"chunk_hash": asked.ChunkID})
	}
	b, err := r.find(reference{BlockID: asked.BlockID})
	switch {
	case err != nil:
		return nil, err
	case asked.Shard == nil || *asked.Shard < 0 || *asked.Shard >= len(b.chunks):
		return nil, handlerError("INVALID_SHARD_ID", members{"shard_id": asked.Shard})
	}
	return r.showChunk(b.chunks[*asked.Shard]), nil
}

func (r *request) showChunk(c chunk) any {
	transactions := []any{}
	for _, s := range c.transactions {
		transactions = append(transactions, showTransaction(s))
	}
	receipts := []any{}
	for _, receipt := range c.receipts {
		receipts = append(receipts, members{"receipt_id": near.HashText(receipt.id), "predecessor_id": receipt.predecessor, "receiver_id": receipt.receiver})
	}
	return members{
		"author": "producer.near", "header": members{"chunk_hash": near.HashText(c.hash), "shard_id": c.shard, "height_created": c.created, "height_included": c.created},
		"transactions": transactions, "receipts": receipts,
	}
}

// showTransaction is a transaction in answers.
func showTransaction(s near.Signed) any {
	shown := members{
		"signer_id": s.Signer, "public_key": s.Key.String(), "nonce": s.Nonce.Value, "receiver_id": s.Receiver,
		"actions": s.ShowActions(), "priority_fee": 0, "signature": s.Signature.String(), "hash": near.HashText(s.Hash()),
	}
	if s.Nonce.Index != nil {
		shown["nonce_index"] = *s.Nonce.Index
	}
	if s.Version == near.V1 {
		shown["nonce_mode"] = "Monotonic"
		if s.Strict {
			shown["nonce_mode"] = "Strict"
		}
	}
	return shown
}

func (r *request) gasPrice() (any, error) {
	return members{"gas_price": strconv.Itoa(gasPrice)}, nil
}

func (r *request) status() (any, error) {
	r.node.chain.mu.Lock()
	defer r.node.chain.mu.Unlock()
	tip, first := r.tip(), r.node.chain.head.below(r.node.chain.options.Height)
	name := r.node.chain.options.Name
	genesis := first.hash
	if r.faults.Chain != "" {
		name, genesis = r.faults.Chain, idOf(r.faults.Chain, hash{}, 0)
	}
	return members{
		"chain_id": name, "genesis_hash": near.HashText(genesis),
		"protocol_version": r.node.chain.options.Protocol, "latest_protocol_version": r.node.chain.options.Protocol,
		"sync_info": members{
			"latest_block_hash": near.HashText(tip.hash), "latest_block_height": tip.height, "latest_block_time": timeText(tip.time), "syncing": false,
			"earliest_block_hash": near.HashText(first.hash), "earliest_block_height": first.height, "earliest_block_time": timeText(first.time),
		},
	}, nil
}

func (r *request) config() (any, error) {
	o := r.node.chain.options
	return members{
		"chain_id": o.Name, "protocol_version": o.Protocol, "genesis_height": o.Height, "transaction_validity_period": o.Validity, "epoch_length": 43_200,
		"runtime_config": members{"storage_amount_per_byte": stakePerByte.Dec()},
	}, nil
}

// changes answers for access keys.
func (r *request) changes() (any, error) {
	var asked struct {
		reference
		Type string `json:"changes_type"`
		Keys []struct {
			Account string `json:"account_id"`
			Key     string `json:"public_key"`
		} `json:"keys"`
		Accounts []string `json:"account_ids"`
	}
	if err := r.read(&asked); err != nil {
		return nil, err
	}
	wanted := map[[2]string]bool{}
	switch asked.Type {
	case "single_access_key_changes":
		for _, k := range asked.Keys {
			wanted[[2]string{k.Account, k.Key}] = true
		}
	case "all_access_key_changes":
		for _, account := range asked.Accounts {
			wanted[[2]string{account, ""}] = true
		}
	default:
		return nil, parseError("Failed parsing args: unknown variant `%s`", asked.Type)
	}
	r.node.chain.mu.Lock()
	defer r.node.chain.mu.Unlock()
	b, err := r.find(asked.reference)
	if err != nil {
		return nil, err
	}
	shown := []any{}
	for _, change := range b.changes {
		if wanted[[2]string{change.account, change.key.String()}] || wanted[[2]string{change.account, ""}] {
			shown = append(shown, change.show())
		}
	}
	if r.faults.NoChanges {
		shown = []any{}
	}
	return members{"block_hash": near.HashText(b.hash), "changes": shown}, nil
}

func (c change) show() any {
	cause := members{"type": c.cause, "receipt_hash": near.HashText(c.by)}
	if c.cause == "transaction_processing" {
		cause = members{"type": c.cause, "tx_hash": near.HashText(c.by)}
	}
	kind, value := "access_key_update", members{"account_id": c.account, "public_key": c.key.String()}
	if c.deleted {
		kind = "access_key_deletion"
	} else {
		value["access_key"] = members{"nonce": c.nonce, "permission": "FullAccess"}
	}
	return members{"cause": cause, "type": kind, "change": value}
}

// effects answers which accounts a block touched.
func (r *request) effects() (any, error) {
	var ref reference
	if err := r.read(&ref); err != nil {
		return nil, err
	}
	r.node.chain.mu.Lock()
	defer r.node.chain.mu.Unlock()
	b, err := r.find(ref)
	if err != nil {
		return nil, err
	}
	touched := map[[2]string]bool{}
	for name := range b.state.changed {
		if b.parent == nil || b.state.under == nil {
			continue // a flattened state lists every account
		}
		touched[[2]string{"account_touched", name}] = true
	}
	for _, c := range b.changes {
		touched[[2]string{"access_key_touched", c.account}] = true
	}
	if r.faults.NoChanges {
		touched = nil
	}
	shown := []any{}
	for t := range touched {
		shown = append(shown, members{"type": t[0], "account_id": t[1]})
	}
	sort.Slice(shown, func(i, j int) bool {
		a, b := shown[i].(members), shown[j].(members)
		return a["account_id"].(string)+a["type"].(string) < b["account_id"].(string)+b["type"].(string)
	})
	return members{"block_hash": near.HashText(b.hash), "changes": shown}, nil
}
