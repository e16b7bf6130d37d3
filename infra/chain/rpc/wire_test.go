package rpc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestDecodeMatchesByID(t *testing.T) {
	replies, refused, err := decode([]byte(` [
		{"jsonrpc":"2.0","id":12,"result":null},
		{"jsonrpc":"2.0","id":10,"result":"0x1"},
		{"jsonrpc":"2.0","id":11,"error":{"code":-32000,"message":"no"}}] `), 10, 3)
	if err != nil || refused != nil {
		t.Fatal(err, refused)
	}
	if string(replies[0].result) != `"0x1"` || !replies[2].null() {
		t.Errorf("replies %+v", replies)
	}
	node := (*NodeError)(nil)
	if !errors.As(replies[1].err, &node) || node.Code != -32000 || node.Message != "no" {
		t.Errorf("second reply %v", replies[1].err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, body := range []string{
		``, `nonsense`, `<html>502 Bad Gateway</html>`, `null`, `{}`, `[]`,
		`{"jsonrpc":"2.0","id":1,"result":"0x`,
		`{"jsonrpc":"2.0","id":2,"result":"0x1"}`,
		`{"jsonrpc":"2.0","id":"1","result":"0x1"}`,
		`{"jsonrpc":"2.0","id":null,"result":"0x1"}`,
		`{"jsonrpc":"2.0","id":-1,"result":"0x1"}`,
		`{"jsonrpc":"2.0","id":1.0,"result":"0x1"}`,
		`{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":1,"result":"0x1"} trailing`,
		`[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":1,"result":"0x1"}]`,
	} {
		if replies, refused, err := decode([]byte(body), 1, 1); err == nil {
			t.Errorf("%s: %+v %v", body, replies, refused)
		}
	}
	twice := `[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":1,"result":"0x1"}]`
	if _, _, err := decode([]byte(twice), 1, 2); err == nil {
		t.Error("two replies to one call")
	}
}

func TestDecodeRefusal(t *testing.T) {
	for _, n := range []int{1, 3} {
		_, refused, err := decode([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}`), 1, n)
		if err != nil || refused == nil || refused.Code != codeInvalidRequest {
			t.Errorf("%d calls: %v %v", n, refused, err)
		}
	}
}

func TestEncode(t *testing.T) {
	one, err := encode([]call{{"eth_chainId", nil}}, 7)
	if want := `{"jsonrpc":"2.0","id":7,"method":"eth_chainId","params":[]}`; err != nil || string(one) != want {
		t.Errorf("%s %v", one, err)
	}
	two, err := encode([]call{{"a", []any{quantity(255), true}}, {"b", nil}}, 7)
	want := `[{"jsonrpc":"2.0","id":7,"method":"a","params":["0xff",true]},{"jsonrpc":"2.0","id":8,"method":"b","params":[]}]`
	if err != nil || string(two) != want {
		t.Errorf("%s %v", two, err)
	}
}

func TestQuantityIsStrict(t *testing.T) {
	for text, want := range map[string]quantity{`"0x0"`: 0, `"0x1"`: 1, `"0xfF"`: 255, `"0xffffffffffffffff"`: 1<<64 - 1} {
		var q quantity
		if err := json.Unmarshal([]byte(text), &q); err != nil || q != want {
			t.Errorf("%s: %d %v", text, q, err)
		}
	}
	for _, text := range []string{`"0x"`, `"0x00"`, `"0x01"`, `"1"`, `"0X1"`, `1`, `"0x+1"`, `"0x-1"`, `"0x1_0"`, `"0x10000000000000000"`, `""`, `"0xg"`} {
		var q quantity
		if err := json.Unmarshal([]byte(text), &q); err == nil {
			t.Errorf("%s is %d", text, q)
		}
	}
}

func TestParseBlockAndReceiptNeedTheirFields(t *testing.T) {
	const hash = `"0x1111111111111111111111111111111111111111111111111111111111111111"`
	block := `{"number":"0x5","hash":` + hash + `,"parentHash":` + hash + `,"timestamp":"0x6","transactions":[` + hash + `],"type":"0x76"}`
	receipt := `{"transactionHash":` + hash + `,"blockHash":` + hash + `,"blockNumber":"0x5","transactionIndex":"0x0",
		"status":"0x0","gasUsed":"0x5208","type":"0x76","effectiveGasPrice":"0xffffffffffffffffffff"}`
	if seen, err := parseBlock(reply{result: json.RawMessage(block)}, id); err != nil || seen.block.Number != 5 || seen.block.Time != 6 || len(seen.contents.Hashes) != 1 {
		t.Errorf("%+v %v", seen, err)
	}
	n, err := parseReceipt(json.RawMessage(receipt))
	if err != nil {
		t.Fatal(err)
	}
	if b := n.in(mustBlock(t, block)); b.Status != 0 || b.GasUsed != 21000 || b.EffectiveGasPrice != "1208925819614629174706175" || b.Block.Time != 6 {
		t.Errorf("%+v", b)
	}
	for _, broken := range []string{"number", "hash", "parentHash", "timestamp"} {
		text := strings.Replace(block, `"`+broken+`"`, `"x"`, 1)
		if _, err := parseBlock(reply{result: json.RawMessage(text)}, id); err == nil {
			t.Errorf("a block without %s", broken)
		}
	}
	for _, broken := range []string{"transactionHash", "blockHash", "blockNumber", "transactionIndex", "status", "gasUsed"} {
		text := strings.Replace(receipt, `"`+broken+`"`, `"x"`, 1)
		if _, err := parseReceipt(json.RawMessage(text)); err == nil {
			t.Errorf("a receipt without %s", broken)
		}
	}
	for _, text := range []string{
		strings.Replace(receipt, `"status":"0x0"`, `"status":"0x2"`, 1),
		strings.Replace(receipt, `"0xffffffffffffffffffff"`, `"0x0f"`, 1),
		strings.Replace(receipt, `"0xffffffffffffffffffff"`, `"12"`, 1),
		strings.Replace(receipt, `"0x5208"`, `21000`, 1),
	} {
		if _, err := parseReceipt(json.RawMessage(text)); err == nil {
			t.Errorf("parsed %s", text)
		}
	}
}
