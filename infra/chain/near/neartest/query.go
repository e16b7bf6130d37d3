package neartest

import (
	"sort"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/chain/near"
)

func timeText(nanoseconds uint64) string {
	return time.Unix(0, int64(nanoseconds)).UTC().Format(time.RFC3339Nano)
}

// keyQuery are the parameters of reads of accounts and keys.
type keyQuery struct {
	reference
	Type    string `json:"request_type"`
	Account string `json:"account_id"`
	Key     string `json:"public_key"`
	Method  string `json:"method_name"`
	Args    string `json:"args_base64"`
}

func (r *request) query() (any, error) {
	var q keyQuery
	if list, is := r.list(); is {
		// The old form: ["access_key/alice.near/ed25519:…", ""].
		path := strings.Split(strings.Trim(string(list[0]), `"`), "/")
		switch {
		case len(path) == 3 && path[0] == "access_key":
			q.Type, q.Account, q.Key = "view_access_key", path[1], path[2]
		case len(path) == 2 && path[0] == "account":
			q.Type, q.Account = "view_account", path[1]
		default:
			return nil, parseError("Failed parsing args: Not supported query path")
		}
		q.Finality = "optimistic"
	} else if err := r.read(&q); err != nil {
		return nil, err
	}
	if err := near.CheckAccount(q.Account); err != nil {
		return nil, parseError("Failed parsing args: %v", err)
	}
	r.node.chain.mu.Lock()
	defer r.node.chain.mu.Unlock()
	b, err := r.find(q.reference)
	if err != nil {
		return nil, err
	}
	if r.faults.Untracked {
		return nil, handlerError("UNAVAILABLE_SHARD", members{"requested_shard_id": r.node.chain.shardOf(q.Account)})
	}
	a := b.state.get(q.Account)
	at := members{"block_height": b.height, "block_hash": near.HashText(b.hash)}
	if a == nil && q.Type != "view_access_key" {
		return nil, handlerError("UNKNOWN_ACCOUNT", members{"requested_account_id": q.Account, "block_height": b.height, "block_hash": near.HashText(b.hash)})
	}
	switch q.Type {
	case "view_account":
		at["amount"], at["locked"], at["storage_usage"], at["code_hash"] = a.balance.Dec(), "0", a.storage, near.HashText(a.code)
		at["storage_paid_at"] = 0
		return at, nil
	case "view_access_key":
		key, known := find(a, q.Key)
		if !known {
			at["error"] = "access key " + q.Key + " does not exist while viewing"
			at["logs"] = []any{}
			return at, nil
		}
		at["nonce"], at["permission"] = key.nonce, showPermission(key)
		return at, nil
	case "view_access_key_list":
		at["keys"] = showKeys(a)
		return at, nil
	case "view_gas_key_nonces":
		key, known := find(a, q.Key)
		if !known || key.permission.Gas == nil {
			return nil, handlerError("UNKNOWN_GAS_KEY", members{"public_key": q.Key})
		}
		at["nonces"] = append([]uint64{}, key.nonces...)
		return at, nil
	case "call_function":
		at["result"], at["logs"] = []int{}, []any{}
		return at, nil
	}
	return nil, parseError("Failed parsing args: unknown variant `%s`", q.Type)
}

// accessKey is the newer form, with a proper error for a missing key.
func (r *request) accessKey() (any, error) {
	var q keyQuery
	if err := r.read(&q); err != nil {
		return nil, err
	}
	r.node.chain.mu.Lock()
	defer r.node.chain.mu.Unlock()
	b, err := r.find(q.reference)
	if err != nil {
		return nil, err
	}
	key, known := find(b.state.get(q.Account), q.Key)
	if !known {
		return nil, handlerError("UNKNOWN_ACCESS_KEY", members{"public_key": q.Key, "block_height": b.height, "block_hash": near.HashText(b.hash)})
	}
	return members{"nonce": key.nonce, "permission": showPermission(key), "block_height": b.height, "block_hash": near.HashText(b.hash)}, nil
}

func find(a *account, text string) (accessKey, bool) {
	if a == nil {
		return accessKey{}, false
	}
	for k, key := range a.keys {
		if k.String() == text {
			return key, true
		}
	}
	return accessKey{}, false
}

func showKeys(a *account) any {
	keys := []members{}
	for k, key := range a.keys {
		keys = append(keys, members{"public_key": k.String(), "access_key": members{"nonce": key.nonce, "permission": showPermission(key)}})
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i]["public_key"].(string) < keys[j]["public_key"].(string) })
	return keys
}

func showPermission(key accessKey) any {
	name, shown := "FullAccess", members{}
	if call := key.permission.Call; call != nil {
		name = "FunctionCall"
		shown["receiver_id"], shown["method_names"], shown["allowance"] = call.Receiver, append([]string{}, call.Methods...), nil
		if call.Allowance != nil {
			left := *call.Allowance
			shown["allowance"] = left.Sub(&left, &key.spent).Dec()
		}
	}
	switch {
	case key.permission.Gas != nil:
		name = "GasKey" + name
		shown["balance"], shown["num_nonces"] = key.balance.Dec(), len(key.nonces)
	case key.permission.Call == nil:
		return name
	}
	return members{name: shown}
}
