package tempo_test

import (
	"bytes"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

func TestEveryFieldIsRead(t *testing.T) {
	token := bytes.Repeat([]byte{0x11}, 20)
	raw := plain().
		with(fCalls, []any{
			[]any{[]byte{}, []byte{}, []byte{0x60}},
			[]any{recipient, uint64(9), []byte{}},
		}).
		with(fBefore, uint64(math.MaxUint64)).
		with(fAfter, uint64(12)).
		with(fFeeToken, token).
		sign(t)
	got, err := tempo.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	to, fee := chain.Address(recipient), chain.Address(token)
	want := chain.Signed{
		Chain: 42431, Hash: chain.Keccak(raw), Type: 0x76, Sender: testAccount(t), Signature: chain.Secp256k1,
		FeeToken: &fee, NonceKey: chain.NonceKey{31: 42}, Nonce: 7,
		Window: chain.Window{After: 12, Before: math.MaxUint64}, Gas: 3_000_000,
		MaxFee: uint256.NewInt(20_000_000_000), MaxPriorityFee: uint256.NewInt(1),
		Calls: []chain.Call{
			{Value: uint256.NewInt(0), Input: []byte{0x60}},
			{To: &to, Value: uint256.NewInt(9), Input: []byte{}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong (-want +got):\n%s", diff)
	}
}

// A decoded transaction must not change with the caller's buffer.
func TestTheBytesAreNotKept(t *testing.T) {
	raw := plain().sign(t)
	buffer := bytes.Clone(raw)
	got, err := tempo.Decode(buffer)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(buffer, raw) {
		t.Error("the caller's bytes were changed")
	}
	clear(buffer)
	want, _ := tempo.Decode(raw)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed with the buffer (-want +got):\n%s", diff)
	}
}

func TestFaults(t *testing.T) {
	long := bytes.Repeat([]byte{1}, 33)
	call := []any{recipient, []byte{}, []byte{}}
	authorization := []any{uint64(1), recipient, uint64(0), secp256k1(t, chain.Hash{})}
	nested := any([]byte{})
	for range 10 {
		nested = []any{nested}
	}
	keyed := func(authorization ...any) []byte {
		return append(plain(), []any{authorization, secp256k1(t, chain.Hash{})}).sign(t)
	}
	payer := func(vrs ...any) []byte { return plain().with(fFeePayer, vrs).sign(t) }
	flawed := func(place int, item any) []byte { return plain().with(place, item).sign(t) }

	for _, c := range []struct {
		name string
		raw  []byte
		want chain.Fault
	}{
		{"type byte only", []byte{0x76}, chain.FaultRLP},
		{"empty list", []byte{0x76, 0xc0}, chain.FaultRLP},
		{"a string", []byte{0x76, 0x80}, chain.FaultRLP},
		{"length of 2^63", append([]byte{0x76, 0xff, 0x80}, make([]byte, 7)...), chain.FaultRLP},
		{"length cut off", []byte{0x76, 0xfb, 0x01}, chain.FaultRLP},
		{"long form of a short list", []byte{0x76, 0xf8, 0x01, 0x01}, chain.FaultNonCanonical},
		{"trailing byte", append(plain().sign(t), 0), chain.FaultTrailing},
		{"128 KiB and a byte", append(plain().sign(t), make([]byte, 128<<10)...), chain.FaultTooLarge},
		{"chain id 0", flawed(fChain, uint64(0)), chain.FaultWrongChain},
		{"chain id of 9 bytes", flawed(fChain, long[:9]), chain.FaultOverflow},
		{"tip of 17 bytes", flawed(fTip, long[:17]), chain.FaultOverflow},
		{"tip above max fee", flawed(fTip, uint64(1<<40)), chain.FaultInvalid},
		{"gas a list", flawed(fGas, []any{}), chain.FaultRLP},
		{"calls a string", flawed(fCalls, []byte{}), chain.FaultRLP},
		{"call of 2 items", flawed(fCalls, []any{call[:2]}), chain.FaultRLP},
		{"call of 4 items", flawed(fCalls, []any{append(call[:3:3], []byte{})}), chain.FaultRLP},
		{"value of 33 bytes", flawed(fCalls, []any{[]any{recipient, long, []byte{}}}), chain.FaultOverflow},
		{"value 0x00", flawed(fCalls, []any{[]any{recipient, []byte{0}, []byte{}}}), chain.FaultNonCanonical},
		{"to of 19 bytes", flawed(fCalls, []any{[]any{recipient[:19], []byte{}, []byte{}}}), chain.FaultRLP},
		{"0x8101 as the value", flawed(fCalls, []any{rlp.RawValue(append([]byte{0xd8, 0x94}, append(bytes.Clone(recipient), 0x81, 0x01, 0x80)...))}), chain.FaultNonCanonical},
		{"CREATE with delegation", plain().with(fCalls, []any{[]any{[]byte{}, []byte{}, []byte{}}}).with(fAuthorizations, []any{authorization}).sign(t), chain.FaultInvalid},
		{"access list key of 31 bytes", flawed(fAccessList, []any{[]any{recipient, []any{long[:31]}}}), chain.FaultRLP},
		{"access list entry of 3 items", flawed(fAccessList, []any{[]any{recipient, []any{}, []byte{}}}), chain.FaultRLP},
		{"nonce key of 33 bytes", flawed(fNonceKey, long), chain.FaultOverflow},
		{"account nonce 2^64-1", plain().with(fNonceKey, []byte{}).with(fNonce, uint64(math.MaxUint64)).sign(t), chain.FaultOverflow},
		{"valid before 0x00", flawed(fBefore, []byte{0}), chain.FaultNonCanonical},
		{"window of no length", plain().with(fBefore, uint64(5)).with(fAfter, uint64(5)).sign(t), chain.FaultInvalid},
		{"fee token of 21 bytes", flawed(fFeeToken, long[:21]), chain.FaultRLP},
		{"fee payer v = 2", payer(uint64(2), uint64(1), uint64(1)), chain.FaultFeePayer},
		{"fee payer r of 33 bytes", payer(uint64(0), long, uint64(1)), chain.FaultOverflow},
		{"fee payer of 2 items", payer(uint64(0), uint64(1)), chain.FaultRLP},
		{"fee payer of 4 items", payer(uint64(0), uint64(1), uint64(1), uint64(1)), chain.FaultRLP},
		{"authorization without signature", flawed(fAuthorizations, []any{authorization[:3]}), chain.FaultRLP},
		{"authorization by v = 2", flawed(fAuthorizations, []any{append(authorization[:3:3], append(make([]byte, 64), 2))}), chain.FaultRLP},
		{"key authorization unsigned", append(plain(), []any{[]any{uint64(1), uint64(0), recipient}}).sign(t), chain.FaultRLP},
		{"key authorization by an access key", append(plain(), []any{[]any{uint64(1), uint64(0), recipient}, append([]byte{4}, make([]byte, 85)...)}).sign(t), chain.FaultRLP},
		{"key type of 2 bytes", keyed(uint64(1), uint64(256), recipient), chain.FaultOverflow},
		{"key expiry written out as none", keyed(uint64(1), uint64(0), recipient, uint64(0)), chain.FaultNonCanonical},
		{"key scopes written out as none", keyed(uint64(1), uint64(0), recipient, uint64(5), []any{}, []byte{}), chain.FaultNonCanonical},
		{"key limit period of 0", keyed(uint64(1), uint64(0), recipient, uint64(5), []any{[]any{recipient, uint64(1), uint64(0)}}), chain.FaultNonCanonical},
		{"key scopes nested too deep", keyed(uint64(1), uint64(0), recipient, uint64(5), []any{}, nested), chain.FaultRLP},
	} {
		t.Run(c.name, func(t *testing.T) { checkFault(t, c.raw, c.want) })
	}
}

// A signature inside the authorization lists can be written in several ways too. The node
// hashes, and the sender signs, the node's own form. (Tried on anvil 1.7.1, whose decoder is
// the node's.)
func TestNestedSignaturesAreSettled(t *testing.T) {
	tuple := []any{uint64(42431), recipient, uint64(3)}
	for _, c := range []struct {
		name string
		list func(sig []byte) fields
	}{
		{"authorization", func(sig []byte) fields {
			return plain().with(fAuthorizations, []any{append(tuple[:3:3], sig)})
		}},
		{"authorization by access key", func(sig []byte) fields {
			return plain().with(fAuthorizations, []any{append(tuple[:3:3], append(append([]byte{4}, recipient...), sig...))})
		}},
		{"key authorization", func(sig []byte) fields {
			return append(plain(), []any{[]any{uint64(42431), uint64(0), recipient}, sig})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			settled := secp256k1(t, chain.Keccak(nil))
			canonical := c.list(settled)
			bySender := secp256k1(t, canonical.digest(t))
			for _, v := range []byte{settled[64] - 27, settled[64], settled[64] + 8, settled[64] + 208} {
				written := append(bytes.Clone(settled[:64]), v)
				got, reencoded, err := tempo.Canonical(c.list(written).signed(t, bySender))
				if err != nil {
					t.Fatalf("v = %d: %v", v, err)
				}
				if want := canonical.signed(t, bySender); !bytes.Equal(reencoded, want) || got.Hash != chain.Keccak(want) {
					t.Errorf("v = %d: canonical %x, hash %s", v, reencoded, got.Hash)
				}
				if got.Sender != testAccount(t) {
					t.Errorf("v = %d: sender %s, want %s", v, got.Sender, testAccount(t))
				}
			}
		})
	}
}

// Transactions refused only by a node's current policy are not refused by Decode.
func TestPolicyIsLeftToTheNode(t *testing.T) {
	for name, f := range map[string]fields{
		"no gas":                      plain().with(fGas, uint64(0)),
		"2D nonce 2^64-1":             plain().with(fNonce, uint64(math.MaxUint64)),
		"key fields of forks to come": append(plain(), []any{[]any{uint64(1), uint64(9), recipient, []byte{}, []byte{}, []byte{}, make([]byte, 32), uint64(1), recipient, []any{[]any{}}}, secp256k1(t, chain.Hash{})}),
		"limits and scopes": append(plain(), []any{[]any{uint64(1), uint64(1), recipient, uint64(5),
			[]any{[]any{recipient, []byte{}}, []any{recipient, uint64(1), uint64(60)}},
			[]any{[]any{recipient, []any{[]any{[]byte{1, 2, 3, 4}, []any{recipient}}}}}}, secp256k1(t, chain.Hash{})}),
		"fee token 0": plain().with(fFeeToken, make([]byte, 20)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tempo.Decode(f.sign(t))
			if err != nil || got.Sender != testAccount(t) {
				t.Errorf("sender %s, error %v", got.Sender, err)
			}
		})
	}
}

// The most expensive input of 128 KiB.
func TestWorkIsBounded(t *testing.T) {
	const room = 128<<10 - 300
	repeat := func(item any, size int) (list []any) {
		for range room / size {
			list = append(list, item)
		}
		return list
	}
	authorization := []any{uint64(1), recipient, uint64(0), secp256k1(t, chain.Hash{})}
	for name, f := range map[string]fields{
		"calls":          plain().with(fCalls, repeat([]any{recipient, []byte{}, []byte{}}, 24)),
		"input":          plain().with(fCalls, []any{[]any{recipient, []byte{}, make([]byte, room)}}),
		"access list":    plain().with(fAccessList, []any{[]any{recipient, repeat(make([]byte, 32), 33)}}),
		"authorizations": plain().with(fAuthorizations, repeat(authorization, 92)),
		"key scopes":     append(plain(), []any{[]any{uint64(1), uint64(0), recipient, uint64(1), []any{}, repeat([]any{}, 1)}, secp256k1(t, chain.Hash{})}),
	} {
		t.Run(name, func(t *testing.T) {
			raw := f.sign(t)
			if len(raw) > tempo.MaxSize || len(raw) < tempo.MaxSize-1000 {
				t.Fatalf("%d bytes do not fill %d", len(raw), tempo.MaxSize)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := tempo.Decode(raw)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%v, %.1f times its size in memory", took, float64(allocated)/float64(len(raw)))
			// The deadline detects quadratic work; it is no measurement. It must hold under the
			// race detector on a busy machine.
			if took > time.Second || allocated > 20*uint64(len(raw)) {
				t.Errorf("%d bytes took %v and %d bytes of memory", len(raw), took, allocated)
			}
		})
	}
}

func TestFeePayer(t *testing.T) {
	token := bytes.Repeat([]byte{0x11}, 20)
	signedByPayer := plain().with(fFeeToken, token)
	sender := testAccount(t)
	digest := chain.Keccak(signedByPayer.with(fFeePayer, sender[:]).encode(t, 0x78))
	sig, err := crypto.Sign(digest[:], payerKey(t))
	if err != nil {
		t.Fatal(err)
	}
	bySender := secp256k1(t, plain().with(fFeePayer, rlp.RawValue{0x00}).digest(t))
	vrs := []any{uint64(sig[64]), new(uint256.Int).SetBytes(sig[:32]).ToBig(), new(uint256.Int).SetBytes(sig[32:64]).ToBig()}
	got, err := tempo.Decode(signedByPayer.with(fFeePayer, vrs).signed(t, bySender))
	if err != nil {
		t.Fatal(err)
	}
	payer := chain.Address(crypto.PubkeyToAddress(payerKey(t).PublicKey))
	if got.Sender != sender || got.FeePayer == nil || *got.FeePayer != payer || got.FeeToken == nil {
		t.Errorf("sender %s, fee payer %v, fee token %v", got.Sender, got.FeePayer, got.FeeToken)
	}
	// The payer commits to the token: with another token, the signature recovers to another
	// account.
	other, err := tempo.Decode(signedByPayer.with(fFeeToken, recipient).with(fFeePayer, vrs).signed(t, bySender))
	if err == nil && *other.FeePayer == payer {
		t.Error("the fee payer did not commit to the fee token")
	}
	if err != nil && !strings.Contains(err.Error(), string(chain.FaultFeePayer)) {
		t.Errorf("error is %v", err)
	}
}
