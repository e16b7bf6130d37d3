package wallets

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
)

// The members of a transaction become the intent; the nonce, the type and low tips are passed over.
func TestTransaction(t *testing.T) {
	key := chain.NonceKey{31: 5}
	token := chain.Address{0: 0x20}
	one := []intent.Call{{To: &payee}}
	for name, c := range map[string]struct {
		path, more string
		want       intent.Request
	}{
		"plain":             {onOtherPath, `,"nonce":"0x7","type":"0x2","chainId":"0x7a69","accessList":[],"gasPrice":null`, intent.Request{Calls: one}},
		"value and data":    {onOtherPath, `,"value":"0x0a","data":"0x01","input":"0x01"`, intent.Request{Calls: []intent.Call{{To: &payee, Value: intent.NewAmount(10), Data: intent.Data{1}}}}},
		"gas and fees":      {onOtherPath, `,"gas":"0x5208","maxFeePerGas":"0x2710","maxPriorityFeePerGas":"0x3e8"`, intent.Request{Calls: one, Gas: intent.Gas{Limit: 21_000, MaxFee: intent.NewAmount(10_000), MaxPriorityFee: intent.NewAmount(1000)}}},
		"another name":      {onOtherPath, `,"gasLimit":"0x5208","gasPrice":"0x2710"`, intent.Request{Calls: one, Gas: intent.Gas{Limit: 21_000, MaxFee: intent.NewAmount(10_000)}}},
		"a tip of nothing":  {onOtherPath, `,"maxFeePerGas":"0x2710","maxPriorityFeePerGas":"0x1"`, intent.Request{Calls: one, Gas: intent.Gas{MaxFee: intent.NewAmount(10_000)}}},
		"of Tempo":          {onTempoPath, `,"calls":[],"type":"0x76","nonceKey":"0x5","feeToken":` + quoted(token) + `,"feePayer":true`, intent.Request{Calls: one, Gas: intent.Gas{FeeToken: &token, Sponsored: true}, NonceKey: intent.NoncePolicy{Mode: intent.NonceFixed, Key: &key}}},
		"the protocol's":    {onTempoPath, `,"nonceKey":"0x0"`, intent.Request{Calls: one, NonceKey: intent.NoncePolicy{Mode: intent.NonceProtocol}}},
		"of a pool":         {onTempoPath + "/hot", `,"gas":"0x5208"`, intent.Request{Calls: one, From: intent.From{Pool: "hot"}}},
		"with a key":        {onTempoPath, `,"idempotencyKey":"order-1"`, intent.Request{Calls: one, Key: "order-1"}},
		"of a longer value": {onOtherPath, `,"value":"0x` + strings.Repeat("0", 70) + `1"`, intent.Request{Calls: []intent.Call{{To: &payee, Value: intent.NewAmount(1)}}}},
	} {
		s := newStack(t)
		a := s.call(c.path, "eth_sendTransaction", pay(c.more))
		if a.code() != jsonrpc.CodeStillWaiting {
			t.Errorf("%s: %s %+v", name, a.Result, a.Error)
			continue
		}
		got := s.all()[a.Error.Data.Intent].Requested.Request
		if c.want.Key == "" && strings.HasPrefix(got.Key, "rpc:") {
			got.Key = ""
		}
		c.want.Chain = onTempo
		if strings.HasPrefix(c.path, onOtherPath) {
			c.want.Chain = onOther
		}
		if c.want.Pool == "" {
			c.want.Signer = &alice
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	s := newStack(t)
	a := s.call(onTempoPath, "eth_sendTransaction", []string{fmt.Sprintf(`{"from":%s,"calls":[{"to":%s,"data":"0x02"},{"to":%s,"value":"0x0"}]}`, quoted(alice), quoted(payee), quoted(bob))})
	if got := s.all()[a.Error.Data.Intent].Requested.Request.Calls; len(got) != 2 || *got[1].To != bob {
		t.Errorf("calls: %+v", got)
	}
}

// What the relay cannot carry out as it is asked for is refused, and leaves nothing behind.
func TestRefusedTransactions(t *testing.T) {
	s := newStack(t)
	for name, c := range map[string]struct {
		path, transaction string
		code              int
	}{
		"no object":           {onTempoPath, `"0x00"`, jsonrpc.CodeInvalidParams},
		"no account":          {onTempoPath, `{"to":` + quoted(payee) + `}`, jsonrpc.CodeInvalidParams},
		"another's account":   {onTempoPath, `{"from":` + quoted(payee) + `,"to":` + quoted(payee) + `}`, codeUnauthorized},
		"not of the pool":     {onTempoPath + "/cold", pay("")[0], codeUnauthorized},
		"no such pool":        {onTempoPath + "/warm", pay("")[0], jsonrpc.CodeNotFound},
		"no such chain":       {"/rpc/5", pay("")[0], jsonrpc.CodeNotFound},
		"another chain":       {onTempoPath, pay(`,"chainId":"0x1"`)[0], jsonrpc.CodeInvalidParams},
		"an unknown member":   {onTempoPath, pay(`,"validBefore":"0x7fffffff"`)[0], jsonrpc.CodeInvalidParams},
		"blobs":               {onTempoPath, pay(`,"type":"0x3","blobVersionedHashes":["0x01"]`)[0], jsonrpc.CodeInvalidParams},
		"an access list":      {onTempoPath, pay(`,"accessList":[{"address":` + quoted(bob) + `,"storageKeys":[]}]`)[0], jsonrpc.CodeInvalidParams},
		"an empty target":     {onTempoPath, `{"from":` + quoted(alice) + `,"to":"","data":"0x01"}`, jsonrpc.CodeInvalidParams},
		"a mistyped target":   {onTempoPath, `{"from":` + quoted(alice) + `,"to":"0xA100000000000000000000000000000000000077"}`, jsonrpc.CodeServer},
		"two inputs":          {onTempoPath, pay(`,"data":"0x01","input":"0x02"`)[0], jsonrpc.CodeInvalidParams},
		"odd data":            {onTempoPath, pay(`,"data":"0x1"`)[0], jsonrpc.CodeInvalidParams},
		"a decimal value":     {onTempoPath, pay(`,"value":"10"`)[0], jsonrpc.CodeInvalidParams},
		"a numeric value":     {onTempoPath, pay(`,"value":10`)[0], jsonrpc.CodeInvalidParams},
		"a value too large":   {onTempoPath, pay(`,"value":"0x1` + strings.Repeat("0", 64) + `"`)[0], jsonrpc.CodeInvalidParams},
		"a value of nothing":  {onTempoPath, pay(`,"value":"0x"`)[0], jsonrpc.CodeInvalidParams},
		"two gas limits":      {onTempoPath, pay(`,"gas":"0x5208","gasLimit":"0x5209"`)[0], jsonrpc.CodeInvalidParams},
		"two prices":          {onTempoPath, pay(`,"gasPrice":"0x2","maxFeePerGas":"0x3"`)[0], jsonrpc.CodeInvalidParams},
		"a price of 0":        {onTempoPath, pay(`,"maxFeePerGas":"0x0"`)[0], jsonrpc.CodeInvalidParams},
		"calls and a target":  {onTempoPath, pay(`,"calls":[{"to":` + quoted(bob) + `}]`)[0], jsonrpc.CodeInvalidParams},
		"an odd call":         {onTempoPath, `{"from":` + quoted(alice) + `,"calls":[{"to":` + quoted(bob) + `,"gas":"0x1"}]}`, jsonrpc.CodeInvalidParams},
		"too many calls":      {onTempoPath, `{"from":` + quoted(alice) + `,"calls":[` + strings.Repeat(`{},`, intent.CallsMax) + `{}]}`, jsonrpc.CodeInvalidParams},
		"too many members":    {onTempoPath, `{` + manyMembers(membersMax) + `,"from":` + quoted(alice) + `}`, jsonrpc.CodeInvalidParams},
		"an empty key":        {onTempoPath, pay(`,"idempotencyKey":""`)[0], jsonrpc.CodeInvalidParams},
		"a key of other text": {onTempoPath, pay(`,"idempotencyKey":"` + "a b" + `"`)[0], jsonrpc.CodeServer},
		"nothing to be done":  {onTempoPath, `{"from":` + quoted(alice) + `}`, jsonrpc.CodeServer},
	} {
		if name == "a mistyped target" { // of mixed case, without the right checksum
			c.transaction = strings.Replace(c.transaction, "0xA1", "0xaB", 1)
			c.code = jsonrpc.CodeInvalidParams
		}
		if a := s.call(c.path, "eth_sendTransaction", []string{c.transaction}); a.code() != c.code || a.Error.Message == "" {
			t.Errorf("%s: %s %+v, want %d", name, a.Result, a.Error, c.code)
		}
	}
	s.refuses = safeguard.ErrHalted.Because("fire")
	if a := s.call(onTempoPath, "eth_sendTransaction", pay("")); a.code() != jsonrpc.CodeServer || a.Error.Data.Code != "halted" || !strings.Contains(a.Error.Message, "fire") {
		t.Errorf("halted: %+v", a.Error)
	}
	if made := s.all(); len(made) > 0 {
		t.Errorf("intents were made: %v", made)
	}
}

func manyMembers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"m%d":1`, i)
	}
	return strings.Join(all, ",")
}

// The relay signs nothing that a client hands in, and says where signed bytes go.
func TestSignsNothing(t *testing.T) {
	s := newStack(t)
	for _, method := range slices.Concat(NeverSigned(), SignedElsewhere()) {
		a := s.call(onTempoPath, method, []string{quoted(alice), `"0x00"`})
		if a.code() != jsonrpc.CodeUnknownMethod || !strings.Contains(a.Error.Message, "eth_sendTransaction") {
			t.Errorf("%s: %s %+v", method, a.Result, a.Error)
		}
	}
}

// The key is the header, or the member; a header of a batch would name several transactions.
func TestKeys(t *testing.T) {
	s := newStack(t)
	const header = "Idempotency-Key"
	first, hash := s.sent(onTempoPath, pay(""), header, "order-1")
	if got := s.all()[first].Requested.Request.Key; got != "order-1" {
		t.Errorf("the key is %q", got)
	}
	for name, c := range map[string]struct {
		more, header string
		code         int
	}{
		"the same as a member": {`,"idempotencyKey":"order-1"`, "", 0},
		"both":                 {`,"idempotencyKey":"order-1"`, "order-1", 0},
		"another fee":          {`,"maxFeePerGas":"0x2710"`, "order-1", 0},
		"two keys":             {`,"idempotencyKey":"order-2"`, "order-1", jsonrpc.CodeInvalidParams},
		"another payment":      {`,"value":"0x1"`, "order-1", jsonrpc.CodeServer},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{header, c.header}
		}
		a := s.call(onTempoPath, "eth_sendTransaction", pay(c.more), headers...)
		if a.code() != c.code || c.code == 0 && string(a.Result) != quoted(hash) {
			t.Errorf("%s: %s %+v", name, a.Result, a.Error)
		}
	}
	var answers []answer
	one := body("eth_sendTransaction", pay(`,"value":"0x2"`)...)
	check(t, json.Unmarshal(s.post(onTempoPath, "["+one+","+one+"]", header, "order-3"), &answers))
	if len(answers) != 2 || answers[0].code() != jsonrpc.CodeInvalidParams || answers[1].code() != jsonrpc.CodeInvalidParams {
		t.Errorf("a batch with a header: %+v", answers)
	}
	if n := len(s.all()); n != 1 {
		t.Errorf("%d intents were made", n)
	}
	second, other := s.sent(onTempoPath, pay(""), header, "order-2")
	if second == first || other == hash {
		t.Error("the same payment with another key is the same intent")
	}
}

// An intent that ends before it is signed is an error with the reason. A hash, once returned, is
// returned for ever.
func TestEnds(t *testing.T) {
	s := newStack(t)
	a := s.call(onTempoPath, "eth_sendTransaction", pay(""))
	id := a.Error.Data.Intent
	s.do(id, intent.Fail{Reason: intent.Refused, Detail: "the calls would revert", At: time.Now()})
	a = s.call(onTempoPath, "eth_sendTransaction", pay(""))
	if a.code() != jsonrpc.CodeServer || a.Error.Data.Intent != id || !strings.Contains(a.Error.Message, "the calls would revert") {
		t.Errorf("it failed: %s %+v", a.Result, a.Error)
	}
	id, hash := s.sent(onTempoPath, pay(`,"value":"0x1"`))
	s.do(id, intent.Cancel{At: time.Now()}, intent.Attempt{Assignment: 1, Kind: intent.NoOp, Hash: chain.Hash{5}, At: time.Now()})
	if a = s.call(onTempoPath, "eth_sendTransaction", pay(`,"value":"0x1"`)); string(a.Result) != quoted(hash) {
		t.Errorf("when it is being canceled: %s %+v", a.Result, a.Error)
	}
}

// Every hash of an intent shows the attempt that landed, to the intent's client alone. A no-op at the
// nonce is no attempt.
func TestReplaced(t *testing.T) {
	s := newStack(t)
	shop := s.key(access.Key{Client: "shop", Scopes: []access.Scope{access.RPC, access.Submit}})
	bank := s.key(access.Key{Client: "bank", Scopes: []access.Scope{access.RPC, access.Submit}})
	id, first := s.sent(onTempoPath, pay(""), "X-API-Key", shop)
	bump := chain.Hash{1, 2, 3}
	s.do(id, intent.Attempt{Assignment: 1, Kind: intent.Bump, Hash: bump, At: time.Now()})
	s.nodes.set("eth_getTransactionByHash", first.String(), `{"hash":`+quoted(first)+`,"blockHash":null}`) // a node that has not noticed
	shows := func(method string, hash chain.Hash, key string) string {
		t.Helper()
		a := s.call(onTempoPath, method, []string{quoted(hash)}, "X-API-Key", key)
		if a.Error != nil {
			t.Fatalf("%s: %+v", method, a.Error)
		}
		var got *struct{ Hash, TransactionHash string }
		check(t, json.Unmarshal(a.Result, &got))
		if got == nil {
			return "null"
		}
		return got.Hash + got.TransactionHash
	}
	const receipt, transaction = "eth_getTransactionReceipt", "eth_getTransactionByHash"
	s.project()
	if got := shows(receipt, first, shop); got != "null" {
		t.Errorf("before it landed the receipt is %s", got)
	}
	if got := shows(transaction, first, shop); got != first.String() {
		t.Errorf("before it landed the transaction is %s", got)
	}
	s.land(id, bump, 1)
	for _, method := range []string{receipt, transaction} {
		if got := shows(method, first, shop); got != bump.String() {
			t.Errorf("%s of the first hash is %s", method, got)
		}
		if got := shows(method, bump, bank); got != bump.String() {
			t.Errorf("%s of the block's own hash is %s", method, got)
		}
	}
	if got := shows(receipt, first, bank); got != "null" {
		t.Errorf("another client sees the receipt %s", got)
	}
	if got := shows(transaction, first, bank); got != first.String() { // as the node shows it
		t.Errorf("another client sees the transaction %s", got)
	}
	if a := s.call(onOtherPath, receipt, []string{quoted(first)}, "X-API-Key", shop); string(a.Result) != "null" {
		t.Errorf("on another chain it is %s", a.Result)
	}

	id, first = s.sent(onTempoPath, pay(`,"value":"0x1"`), "X-API-Key", shop)
	noop := chain.Hash{7}
	s.do(id, intent.Cancel{At: time.Now()}, intent.Attempt{Assignment: 1, Kind: intent.NoOp, Hash: noop, At: time.Now()})
	s.land(id, noop, 1)
	for _, method := range []string{receipt, transaction} {
		if got := shows(method, first, shop); got != "null" {
			t.Errorf("after a no-op %s is %s", method, got)
		}
	}
}

// A transaction of Tempo's type has the members that libraries for Ethereum require.
func TestPlain(t *testing.T) {
	for name, c := range map[string][2]string{
		"of Tempo":    {`{"type":"0x76","calls":[{"to":"0x01","value":"0x2","input":"0x03","data":null},{"to":"0x04"}]}`, `{"type":"0x76","calls":[{"to":"0x01","value":"0x2","input":"0x03","data":null},{"to":"0x04"}],"to":"0x01","value":"0x2","input":"0x03"}`},
		"a creation":  {`{"calls":[{"to":null,"input":"0x03"}]}`, `{"calls":[{"to":null,"input":"0x03"}],"to":null,"value":"0x0","input":"0x03"}`},
		"of Ethereum": {`{"to":"0x01","value":"0x2"}`, `{"to":"0x01","value":"0x2"}`},
		"no call":     {`{"calls":[]}`, `{"calls":[]}`},
		"no object":   {`7`, `7`},
	} {
		var want, got any
		check(t, json.Unmarshal([]byte(c[1]), &want))
		check(t, json.Unmarshal(plain(json.RawMessage(c[0])), &got))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A key uses only the signers and pools that it names, and needs the scope submit to send.
func TestKeysUseTheirOwn(t *testing.T) {
	s := newStack(t)
	both := []access.Scope{access.RPC, access.Submit}
	all := s.key(access.Key{Scopes: both})
	one := s.key(access.Key{Scopes: both, Signers: []chain.Address{alice}})
	pool := s.key(access.Key{Scopes: both, Pools: []string{"cold"}})
	reads := s.key(access.Key{Scopes: []access.Scope{access.RPC}})
	for name, c := range map[string]struct {
		key, path string
		accounts  []chain.Address // nil: the path is refused
		code      int             // of a payment by alice
	}{
		"any":                       {all, onTempoPath, []chain.Address{alice, bob}, jsonrpc.CodeStillWaiting},
		"any, of a pool":            {all, onTempoPath + "/hot", []chain.Address{alice, bob}, jsonrpc.CodeStillWaiting},
		"a signer":                  {one, onTempoPath, []chain.Address{alice}, jsonrpc.CodeStillWaiting},
		"a signer, of its pool":     {one, onTempoPath + "/hot", nil, jsonrpc.CodeNotFound},
		"a pool":                    {pool, onTempoPath + "/cold", []chain.Address{bob}, codeUnauthorized},
		"a pool, of another":        {pool, onTempoPath + "/hot", nil, jsonrpc.CodeNotFound},
		"a pool, of its signers":    {pool, onTempoPath, []chain.Address{}, codeUnauthorized},
		"without the scope to send": {reads, onTempoPath, []chain.Address{alice, bob}, codeUnauthorized},
	} {
		for _, method := range []string{"eth_accounts", "eth_requestAccounts"} {
			a := s.call(c.path, method, nil, "X-API-Key", c.key)
			if c.accounts == nil && a.code() != jsonrpc.CodeNotFound || c.accounts != nil && string(a.Result) != quoted(c.accounts) {
				t.Errorf("%s: %s is %s, %+v", name, method, a.Result, a.Error)
			}
		}
		if a := s.call(c.path, "eth_sendTransaction", pay(""), "X-API-Key", c.key); a.code() != c.code {
			t.Errorf("%s: the payment is %s, %+v", name, a.Result, a.Error)
		}
	}
	if a := s.call(onTempoPath, "wallet_sendCalls", []string{`{}`}, "X-API-Key", reads); a.code() != codeUnauthorized {
		t.Errorf("calls without the scope to send: %+v", a.Error)
	}
}
