package delivery

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

func TestReadSubmission(t *testing.T) {
	limits := rest.Limits{BatchItems: 1000, TransactionBytes: 1 << 10}
	rapid.Check(t, func(t *rapid.T) {
		raws := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 64), 1, 20).Draw(t, "raws")
		id := rapid.Uint64().Draw(t, "chain")
		var texts []string
		for _, raw := range raws {
			text := hex.EncodeToString(raw)
			if rapid.Bool().Draw(t, "upper") {
				text = strings.ToUpper(text)
			}
			texts = append(texts, "0x"+text)
		}
		body, _ := json.Marshal(map[string]any{"chainId": id, "transactions": texts})
		in, err := readSubmission(body, limits, freely)
		if err != nil || in.chain != chain.ID(id) {
			t.Fatalf("read chain %d, %v", in.chain, err)
		}
		var got [][]byte
		for _, it := range in.items {
			got = append(got, it.raw)
		}
		if diff := cmp.Diff(raws, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Row 51 of the bad inputs, and the size limit at its edge.
func TestReadItem(t *testing.T) {
	const most = 8
	for text, fault := range map[string]chain.Fault{
		"": chain.FaultHex, "0": chain.FaultHex, "0x": chain.FaultHex, "zz": chain.FaultHex, "zzzz": chain.FaultHex,
		"0x1": chain.FaultHex, "0x123": chain.FaultHex, "1234": chain.FaultHex, "0X1234": chain.FaultHex,
		" 0x1234": chain.FaultHex, "0x1234 ": chain.FaultHex, "0x12 34": chain.FaultHex, "0x12\n3": chain.FaultHex,
		"0x１２": chain.FaultHex, "0xg0": chain.FaultHex, "x01234": chain.FaultHex,
		"0x" + strings.Repeat("00", most+1): chain.FaultTooLarge,
		"0x" + strings.Repeat("00", most):   "",
		"0xaBcD":                            "",
	} {
		it := readItem([]byte(text), most)
		var malformed *chain.Malformed
		switch {
		case fault == "" && (it.err != nil || len(it.raw) == 0):
			t.Errorf("%q: refused: %v", text, it.err)
		case fault != "" && (!errors.As(it.err, &malformed) || malformed.Fault != fault):
			t.Errorf("%q: answered %v, want fault %s", text, it.err, fault)
		}
	}
}

func BenchmarkReadSubmission(b *testing.B) {
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = "0x" + strings.Repeat(fmt.Sprintf("%02x", i), 200)
	}
	body, _ := json.Marshal(map[string]any{"chainId": 42431, "transactions": texts})
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := readSubmission(body, rest.DefaultLimits(), freely); err != nil {
			b.Fatal(err)
		}
	}
}
