package delivery

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp/rlptest"
)

// Rows 51 to 67: bytes that are no signed transaction, or that two parsers could take for
// different transactions. Faulty transactions are signed correctly, so each has only one fault.
func rawInputs(t *testing.T) []input {
	list := slices.Concat(textInputs(), formInputs(t), signatureInputs(t), meaningInputs(t), windowInputs(t))
	return append(list,
		input{row: 65, what: "every vector of Tempo's that is refused", does: refusedVectors},
		input{row: 65, what: "an access key that nobody has confirmed", does: unconfirmedKey},
		input{row: 66, what: "another's signature, type 2", does: func(t *testing.T, s *stack) int { return pasted(t, s, type2(), eNonce) }},
		input{row: 66, what: "another's signature, type 0x76", does: func(t *testing.T, s *stack) int { return pasted(t, s, type76(), tNonce) }},
		input{row: 66, what: "another's signature, by who may not", does: pastedByBound},
		input{row: 67, what: "mutations", does: mutated},
	)
}

// of is one transaction that is refused with a reason.
func of(row int, what string, raw []byte, reason chain.Fault) input {
	return input{row: row, what: what, request: single(raw), answer: inItsPlace(422, invalidTransaction, string(reason))}
}

// fine is one transaction that is accepted: its fault may pass later, or does not matter.
func fine(row int, what string, raw []byte) input {
	return input{row: row, what: what, request: single(raw), answer: isTaken, events: 1}
}

// Row 51: texts that are not hex.
func textInputs() (list []input) {
	for what, text := range map[string]string{
		"nothing": "", "0x": "0x", "zz": "zz", "0xzz": "0xzz", "half a byte": "0x123", "no 0x": "02c0", "0X": "0X02c0",
		"a space before": " 0x02c0", "a space behind": "0x02c0 ", "a space within": "0x02 c0", "a line feed": `0x02c0\n`, "full-width digits": "0x０２",
	} {
		list = append(list, input{
			row: 51, what: what, request: posted(fmt.Sprintf(`{"chainId":42431,"transactions":["%s"]}`, text)),
			answer: inItsPlace(422, invalidTransaction, string(chain.FaultHex)),
		})
	}
	return list
}

// Rows 52 to 58: malformed transactions.
func formInputs(t *testing.T) []input {
	key := newKey(t)
	good, ours := type2().sign(t, key), type76().sign(t, key)
	long := bytes.Repeat([]byte{1}, 33)
	lengthOf := func(kind byte) []byte { return append([]byte{kind, 0xff, 0x80}, make([]byte, 7)...) } // 2^63
	nested := any([]byte{})
	for range 100 {
		nested = []any{nested}
	}
	keys := make([]any, 3_900) // as many storage keys as 128 KiB hold
	for i := range keys {
		keys[i] = make([]byte, 32)
	}
	return []input{
		of(52, "the type alone", []byte{2}, chain.FaultRLP),
		of(52, "the type alone, 0x76", []byte{0x76}, chain.FaultRLP),
		of(52, "an empty list", []byte{2, 0xc0}, chain.FaultRLP),
		of(52, "an empty list, 0x76", []byte{0x76, 0xc0}, chain.FaultRLP),
		of(52, "type 0x7f", append([]byte{0x7f}, good[1:]...), chain.FaultType),
		of(52, "type 3, a blob's", append([]byte{3}, good[1:]...), chain.FaultType),
		of(52, "type 0x78, a request to a fee payer", append([]byte{0x78}, ours[1:]...), chain.FaultType),
		of(53, "a byte behind the end", append(slices.Clone(good), 0), chain.FaultTrailing),
		of(53, "a byte behind the end, 0x76", append(slices.Clone(ours), 0), chain.FaultTrailing),
		of(53, "two transactions", append(slices.Clone(good), good...), chain.FaultTrailing),
		of(54, "cut short", good[:len(good)-1], chain.FaultRLP),
		of(54, "cut short, 0x76", ours[:len(ours)-1], chain.FaultRLP),
		of(54, "a length of 2^63", lengthOf(2), chain.FaultRLP),
		of(54, "a length of 2^63, 0x76", lengthOf(0x76), chain.FaultRLP),
		of(54, "a short list written as a long one", []byte{2, 0xf8, 1, 1}, chain.FaultNonCanonical),
		of(54, "a field less", type2().without().sign(t, key), chain.FaultRLP),
		of(54, "a field more", type2().with(eAccess+1, uint64(1)).sign(t, key), chain.FaultRLP),
		of(54, "a field less, 0x76", type76().without().sign(t, key), chain.FaultRLP),
		of(54, "two fields more, 0x76", type76().with(tAuthorizations+1, []any{}).with(tAuthorizations+2, uint64(1)).sign(t, key), chain.FaultRLP),
		of(55, "nonce 0x00", type2().with(eNonce, []byte{0}).sign(t, key), chain.FaultNonCanonical),
		of(55, "nonce 0x00, 0x76", type76().with(tNonce, []byte{0}).sign(t, key), chain.FaultNonCanonical),
		of(55, "value 0x8101", type2().with(eValue, rlp.RawValue{0x81, 1}).sign(t, key), chain.FaultNonCanonical),
		of(55, "gas with a leading zero", type2().with(eGas, []byte{0, 1, 2, 3}).sign(t, key), chain.FaultNonCanonical),
		of(55, "gas with a leading zero, 0x76", type76().with(tGas, []byte{0, 1, 2, 3}).sign(t, key), chain.FaultNonCanonical),
		of(56, "a value of 2^256", type2().with(eValue, long).sign(t, key), chain.FaultOverflow),
		of(56, "a call's value of 2^256, 0x76", type76().with(tCalls, []any{[]any{recipient, long, []byte{}}}).sign(t, key), chain.FaultOverflow),
		of(57, "nonce 2^64", type2().with(eNonce, new(big.Int).Lsh(big.NewInt(1), 64)).sign(t, key), chain.FaultOverflow),
		of(57, "nonce 2^64-1", type2().with(eNonce, uint64(math.MaxUint64)).sign(t, key), chain.FaultOverflow),
		of(57, "nonce 2^64, 0x76", type76().with(tNonce, new(big.Int).Lsh(big.NewInt(1), 64)).sign(t, key), chain.FaultOverflow),
		of(57, "the account's nonce 2^64-1, 0x76", type76().with(tNonceKey, []byte{}).with(tNonce, uint64(math.MaxUint64)).sign(t, key), chain.FaultOverflow),
		of(58, "lists in one another", type2().with(eAccess, []any{nested}).sign(t, key), chain.FaultRLP),
		of(58, "lists in one another, 0x76", type76().with(tAccess, []any{nested}).sign(t, key), chain.FaultRLP),
		fine(58, "3,900 storage keys", type2().with(eAccess, []any{[]any{recipient, keys}}).sign(t, key)),
		{row: 58, what: "4,100 storage keys", request: single(type2().with(eAccess, []any{[]any{recipient, append(keys, keys[:200]...)}}).sign(t, key)), answer: inItsPlace(413, txTooLarge, "tx-too-large")},
		{row: 58, what: "100,000 storage keys", request: posted(`{"chainId":42431,"transactions":["0x02` + strings.Repeat("a0"+strings.Repeat("00", 32), 100_000) + `"]}`), answer: cuts(413, rest.ErrPayloadTooLarge)},
	}
}

// Rows 59 to 61: signatures.
func signatureInputs(t *testing.T) (list []input) {
	key := newKey(t)
	zero, order := new(big.Int), crypto.S256().Params().N
	for name, f := range map[string]forged{"legacy": legacyOf(), "type 2": type2(), "type 0x76": type76()} {
		r, s, parity := f.signature(t, key)
		list = append(list,
			of(59, "a high s, "+name, f.signed(t, r, new(big.Int).Sub(order, s), parity^1), chain.FaultSignature),
			of(60, "r of 0, "+name, f.signed(t, zero, s, parity), chain.FaultSignature),
			of(60, "s of 0, "+name, f.signed(t, r, zero, parity), chain.FaultSignature),
			of(60, "r of N, "+name, f.signed(t, order, s, parity), chain.FaultSignature),
			of(60, "s of N, "+name, f.signed(t, r, order, parity), chain.FaultSignature),
		)
	}
	r, s, parity := type2().signature(t, key)
	ours := type76()
	r6, s6, _ := ours.signature(t, key)
	unprotected := legacyOf()
	digest := chain.Keccak(unprotected.encode(t, unprotected.items...))
	sig, err := crypto.Sign(digest[:], key)
	if err != nil {
		t.Fatal(err)
	}
	items := append(slices.Clone(unprotected.items), uint64(sig[64])+27, new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64]))
	return append(list,
		of(60, "a parity of 27", type2().signed(t, r, s, parity+27), chain.FaultSignature),
		of(60, "a parity of 2", type2().signed(t, r, s, 2), chain.FaultSignature),
		of(60, "v of 2, type 0x76", append(ours.signed(t, r6, s6, 0)[:len(ours.signed(t, r6, s6, 0))-1], 2), chain.FaultSignature),
		of(61, "legacy for every chain at once", unprotected.encode(t, items...), chain.FaultUnprotected),
	)
}

// Rows 62 to 64: values of fields.
func meaningInputs(t *testing.T) []input {
	key := newKey(t)
	foreign := func(row int, what string, raw []byte) input {
		return input{row: row, what: what, request: single(raw), answer: inItsPlace(422, wrongChain, "wrong-chain")}
	}
	large := func(row int, what string, raw []byte) input {
		return input{row: row, what: what, request: single(raw), answer: inItsPlace(413, txTooLarge, "tx-too-large")}
	}
	data := bytes.Repeat([]byte{1}, 128<<10+1)
	return []input{
		foreign(62, "chain 1", type2().with(eChain, uint64(1)).sign(t, key)),
		foreign(62, "chain 0", type2().with(eChain, uint64(0)).sign(t, key)),
		foreign(62, "chain 2^64", type2().with(eChain, new(big.Int).Lsh(big.NewInt(1), 64)).sign(t, key)),
		foreign(62, "chain 1, 0x76", type76().with(tChain, uint64(1)).sign(t, key)),
		foreign(62, "chain 0, 0x76", type76().with(tChain, uint64(0)).sign(t, key)),
		of(62, "chain 2^64, 0x76", type76().with(tChain, new(big.Int).Lsh(big.NewInt(1), 64)).sign(t, key), chain.FaultOverflow),
		of(63, "a tip above the cap", type2().with(eTip, uint64(1_000_000_008)).sign(t, key), chain.FaultInvalid),
		of(63, "a tip above the cap, 0x76", type76().with(tTip, uint64(20_000_000_001)).sign(t, key), chain.FaultInvalid),
		of(63, "gas that does not pay for itself", type2().with(eGas, uint64(11_000)).sign(t, key), chain.FaultInvalid),
		of(63, "no gas", type2().with(eGas, uint64(0)).sign(t, key), chain.FaultInvalid),
		fine(63, "more gas than a block has", type2().with(eGas, uint64(math.MaxUint64)).sign(t, key)),
		fine(63, "a cap below the base fee", type2().with(eTip, uint64(0)).with(eCap, uint64(0)).sign(t, key)),
		fine(63, "no gas, 0x76, which forks decide", type76().with(tGas, uint64(0)).sign(t, key)),
		large(64, "data of 128 KiB and a byte", type2().with(eData, data).sign(t, key)),
		large(64, "data of 128 KiB and a byte, 0x76", type76().with(tCalls, []any{[]any{recipient, []byte{}, data}}).sign(t, key)),
	}
}

// Row 65: windows, nonce keys, calls and fee payers.
func windowInputs(t *testing.T) []input {
	key := newKey(t)
	now := uint64(testTime.Unix()) //nolint:gosec // after 1970
	window := func(after, before uint64) forged { return type76().with(tAfter, after).with(tBefore, before) }
	expiring := type76().with(tNonceKey, bytes.Repeat([]byte{0xff}, 32))
	calls := func(n int) forged {
		all := make([]any, n)
		for i := range all {
			all[i] = []any{recipient, []byte{}, []byte{}}
		}
		return type76().with(tCalls, all)
	}
	expired := func(what string, raw []byte) input {
		return input{row: 65, what: what, request: single(raw), answer: inItsPlace(422, tx.ErrAlreadyExpired, "")}
	}
	return []input{
		of(65, "a window that closes before it opens", window(now+60, now+50).sign(t, key), chain.FaultInvalid),
		of(65, "a window of no length", window(now+60, now+60).sign(t, key), chain.FaultInvalid),
		expired("a window that has closed", window(0, now-1).sign(t, key)),
		expired("a window that closes now", window(0, now).sign(t, key)),
		fine(65, "a window that closes in 2 s", window(0, now+2).sign(t, key)),
		fine(65, "a window that opens in ten years", window(now+315_000_000, 0).sign(t, key)),
		fine(65, "an expiring nonce that is not 0", expiring.with(tBefore, now+20).sign(t, key)),
		fine(65, "an expiring nonce without a window", expiring.with(tNonce, uint64(0)).sign(t, key)),
		fine(65, "an expiring nonce far ahead", expiring.with(tNonce, uint64(0)).with(tBefore, now+3_000).sign(t, key)),
		of(65, "a fee payer's v of 2", type76().with(tFeePayer, []any{uint64(2), uint64(1), uint64(1)}).sign(t, key), chain.FaultFeePayer),
		of(65, "a fee payer's s of 0", type76().with(tFeePayer, []any{uint64(0), uint64(1), uint64(0)}).sign(t, key), chain.FaultFeePayer),
		of(65, "no calls", type76().with(tCalls, []any{}).sign(t, key), chain.FaultInvalid),
		fine(65, "5,000 calls", calls(5_000).sign(t, key)),
		{row: 65, what: "10,000 calls", request: single(calls(10_000).sign(t, key)), answer: inItsPlace(413, txTooLarge, "tx-too-large")},
	}
}

// Row 65: vectors that independent programs made and judged invalid, with bad WebAuthn and
// P-256 blobs and signatures among them.
func refusedVectors(t *testing.T, s *stack) int {
	tried := 0
	for _, v := range vectors(t) {
		if v.Expect == "valid" {
			continue
		}
		tried++
		want := invalidTransaction
		if v.Stage != nil && *v.Stage == "expired" {
			want = tx.ErrAlreadyExpired
		}
		res := s.do(http.MethodPost, "/v1/transactions", submissionOf(v.ChainID, v.raw(t)))
		if r := onlyResult(t, []response{res}); r.OK || r.Problem.Status != 422 || r.Problem.Code != string(want) {
			t.Errorf("%s answered %v", v.Name, res)
		}
	}
	if tried < 30 {
		t.Errorf("%d vectors are refused", tried)
	}
	return 0
}

// Row 65: an access key can name any sender. Its transaction is accepted, and joins no group of
// that sender until the chain has confirmed the key.
func unconfirmedKey(t *testing.T, s *stack) int {
	v := vectorNamed(t, "keychain-spoof")
	res := s.do(http.MethodPost, "/v1/transactions", submissionOf(v.ChainID, v.raw(t)))
	r := onlyResult(t, []response{res})
	if !r.OK {
		t.Fatalf("answered %v", res)
	}
	if shown := s.one(r.TxHash); shown["groupPending"] == nil || shown["accessKey"] == nil {
		t.Errorf("shown %v", shown)
	}
	return 1
}

// Row 66: a signature pasted onto another transaction recovers another sender. The transaction
// is accepted as that sender's, and shown for no other.
func pasted(t *testing.T, s *stack, f forged, nonce int) int {
	key := newKey(t)
	claimed := chain.Address(crypto.PubkeyToAddress(key.PublicKey))
	other := f.with(nonce, uint64(8))
	// A signature fits another digest unless no point of the curve has its r. Then the test
	// tries the next one.
	for n := range uint64(64) {
		r, sig, parity := f.with(nonce, 100+n).signature(t, key)
		raw := other.signed(t, r, sig, parity)
		got := s.submit(raw)[0]
		if !got.OK {
			continue
		}
		if got.Sender == strings.ToLower(claimed.String()) {
			t.Errorf("taken on as %s, who has not signed it", claimed)
		}
		if shown := s.one(got.TxHash); shown["sender"] != got.Sender {
			t.Errorf("answered %s, shown %v", got.Sender, shown["sender"])
		}
		return 1
	}
	t.Error("no signature fits")
	return 0
}

// Row 66: a key bound to the intended sender cannot submit it.
func pastedByBound(t *testing.T, _ *stack) int {
	keys := newRing(t)
	s := newStack(t, keys.config)
	key := newKey(t)
	claimed := chain.Address(crypto.PubkeyToAddress(key.PublicKey))
	bound, _ := keys.Create(access.Key{Scopes: access.Scopes(), Senders: []chain.Address{claimed}})
	for n := range uint64(8) {
		r, sig, parity := type2().with(eNonce, 100+n).signature(t, key)
		res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, type2().signed(t, r, sig, parity)), "X-API-Key", bound)
		got := onlyResult(t, []response{res})
		if p := got.Problem; got.OK || p.Code != string(rest.ErrForeignSender) && p.Reason != string(chain.FaultSignature) {
			t.Errorf("answered %v", res)
		}
	}
	if n := s.events(t); n != 0 {
		t.Errorf("%d events", n)
	}
	return 0
}

// Row 67: any bytes get a result or a problem in their place, and soon. The decoders' own tests
// try a million mutations.
func mutated(t *testing.T, s *stack) (taken int) {
	key := newKey(t)
	seeds := [][]byte{legacyOf().sign(t, key), type2().sign(t, key), type76().sign(t, key)}
	for _, v := range vectors(t) {
		if v.Expect == "valid" && v.ChainID == testChain {
			seeds = append(seeds, v.raw(t))
		}
	}
	source := rand.New(rand.NewPCG(1, 2))
	seen := map[chain.Hash]bool{}
	slowest := time.Duration(0)
	for range 20 {
		raws := make([][]byte, 100)
		for i := range raws {
			raws[i] = rlptest.Mutate(source, seeds[source.IntN(len(seeds))])
		}
		began := time.Now()
		for i, r := range s.submit(raws...) {
			switch {
			case r.OK && !r.AlreadyKnown && !seen[r.TxHash]:
				taken++
				seen[r.TxHash] = true
			case !r.OK && (r.Problem.Status != 422 || r.Problem.Detail == ""):
				t.Errorf("%x: %+v", raws[i], r)
			}
		}
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("2,000 mutations, %d taken on; the slowest hundred took %s", taken, slowest)
	return taken
}
