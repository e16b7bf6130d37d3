package rpc

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEveryRuleRules makes a message for each line and expects that line's class and cause:
// every line takes effect, and no two lines contradict each other.
func TestEveryRuleRules(t *testing.T) {
	for _, r := range rules() {
		code := -32000
		if r.code != nil {
			code = *r.code
		}
		samples := map[kind][]string{
			exact:    {r.text, "  " + strings.ToUpper(r.text)},
			prefix:   {r.text + "and more", strings.ToUpper(r.text) + "7"},
			contains: {r.text, "before " + r.text + " after"},
			glob:     {strings.ReplaceAll(r.text, "*", "7"), strings.ReplaceAll(r.text, "*", "0x00 of 12")},
			anything: {"something nobody has heard of"},
		}[r.kind]
		for _, message := range samples {
			if class, cause := Classify(code, message); class != r.class || cause != r.cause {
				t.Errorf("%s: %d %q is %s/%s, not %s/%s", r.file, code, message, class, cause, r.class, r.cause)
			}
		}
	}
	if len(rules()) < 150 {
		t.Errorf("only %d rules", len(rules()))
	}
}

// TestClassify classifies messages that nodes return, word for word.
func TestClassify(t *testing.T) {
	for _, test := range []struct {
		code    int
		message string
		class   tx.Class
		cause   tx.Cause
	}{
		// Proxies, about the size of a request.
		{-32005, "Request Entity Too Large", tx.Retry, ""},
		{-32007, "Request is too big", tx.Retry, ""},
		{-32005, "daily request limit reached", tx.Retry, tx.RateLimited},
		// Tempo and reth.
		{-32000, "already known", tx.Known, ""},
		{-32000, "nonce too low: next nonce 5, tx nonce 3", tx.Retry, tx.NonceTooLow},
		{-32000, "nonce 3 too low, expected 5", tx.Retry, tx.NonceTooLow},
		{-32000, "nonce 9 too high, expected 5", tx.Retry, tx.NonceTooHigh},
		{-32000, "replacement transaction underpriced", tx.Retry, tx.Underpriced},
		{-32000, "transaction underpriced", tx.Retry, tx.Fee},
		{-32000, "max fee per gas less than block base fee", tx.Retry, tx.Fee},
		{-32003, "txpool is full", tx.Retry, tx.PoolFull},
		{-32003, "transaction priority fee below minimum required priority fee 1000000", tx.Retry, tx.Fee},
		{-32003, "insufficient funds for gas * price + value: have 12 want 34", tx.Retry, tx.Funds},
		{-32000, "insufficient fee token balance: required 90000, but only have 0", tx.Retry, tx.Funds},
		{-32000, "insufficient liquidity in FeeAMM pool to swap fee tokens (required: 7)", tx.Retry, tx.Funds},
		{-32000, "insufficient liquidity in FeeAMM pool to swap fee tokens for pair 0x20 -> 0x21 (required: 7)", tx.Retry, tx.Funds},
		{-32003, "fee token 0x1234 is not a TIP-20 token; fee tokens must be TIP-20 tokens", tx.Retry, tx.Funds},
		{-32003, `fee token 0x20c0 uses currency "EUR"; fee tokens must be USD-denominated TIP-20 tokens`, tx.Retry, tx.Funds},
		{-32003, "fee token 0x20c0 is paused and cannot be used for fees", tx.Retry, tx.Funds},
		{-32000, "invalid fee token: 0x20c0000000000000000000000000000000000000", tx.Retry, tx.Funds},
		{-32000, "'valid_after' 1893456000 is too far in the future (max allowed: 1795223935)", tx.Retry, tx.TooEarly},
		{-32000, "'valid_before' 1795223930 is too close to current time (min allowed: 1795223935)", tx.Retry, tx.TooLate},
		{-32000, "transaction expired: current block timestamp 20 >= validBefore 19", tx.Retry, tx.TooLate},
		{-32000, "transaction not valid yet: current block timestamp 20 < validAfter 30", tx.Retry, tx.TooEarly},
		{-32000, "nonce manager error: expiring nonce valid_before (99) too far in the future: must be within 30s of block timestamp (9), max allowed is 39", tx.Retry, tx.TooEarly},
		{-32000, "nonce manager error: expiring nonce transaction expired: valid_before (8) <= block timestamp (9)", tx.Retry, tx.TooLate},
		{-32000, "nonce manager error: NonceError(ExpiringNonceReplay(ExpiringNonceReplay))", tx.Retry, tx.Replayed},
		{-32000, "keychain validation failed: SpendingLimitExceeded", tx.Retry, tx.KeyMissing},
		{-32000, "Keychain signature validation failed: too many scopes, please see https://docs.tempo.xyz/errors/tx/Keychain for more", tx.Retry, tx.KeyMissing},
		{-32000, "Access key expired: expiry 3 <= min allowed 5", tx.Retry, tx.KeyMissing},
		{-32602, "failed to decode signed transaction", tx.Permanent, ""},
		{-32602, "invalid transaction signature", tx.Permanent, ""},
		{-32602, "empty transaction data", tx.Permanent, ""},
		{-32000, "fee payer signature recovery failed", tx.Permanent, ""},
		{-32000, "fee payer cannot resolve to sender", tx.Permanent, ""},
		{-32000, "value transfer not allowed", tx.Permanent, ""},
		{-32000, "legacy V1 keychain signature is no longer accepted, use V2 (type 0x04)", tx.Permanent, ""},
		{-32000, "expiring nonce transaction must have nonce == 0", tx.Permanent, ""},
		{-32000, "expiring nonce transaction requires valid_before to be set", tx.Permanent, ""},
		{-32000, "KeyAuthorization chain_id mismatch: expected 42431, got 1", tx.Permanent, ""},
		{-32000, "invalid chain ID", tx.Permanent, ""},
		{-32000, "intrinsic gas too low", tx.Permanent, ""},
		{-32000, "intrinsic gas too high", tx.Permanent, ""},
		{-32000, "exceeds block gas limit", tx.Permanent, ""},
		{-32000, "exceeds max transaction gas limit", tx.Permanent, ""},
		{-32000, "oversized data: transaction size 140000, limit 131072", tx.Permanent, ""},
		{-32000, "Too many calls in AA transaction: 33 exceeds maximum allowed 32", tx.Permanent, ""},
		{-32000, "Call input size 131073 exceeds maximum allowed 131072 bytes (call index: 0)", tx.Permanent, ""},
		{-32000, "Tempo Transaction with subblock nonce key prefix aren't supported in the pool", tx.Permanent, ""},
		{-32003, "max priority fee per gas higher than max fee per gas", tx.Permanent, ""},
		{-32003, "transaction type not supported", tx.Permanent, ""},
		{-32000, "call gas cost (53000) exceeds the gas limit (21000)", tx.Permanent, ""},
		{-32000, "gas floor (53000) exceeds the gas limit (21000)", tx.Permanent, ""},
		{-32000, "transaction gas limit (40000000) is greater than the cap (30000000)", tx.Permanent, ""},
		{-32000, "caller gas limit exceeds the block gas limit", tx.Permanent, ""},
		{-32000, "priority fee is greater than max fee", tx.Permanent, ""},
		{-32000, "gas price is less than basefee", tx.Retry, tx.Fee},
		{-32000, "lack of funds (1) for max fee (2)", tx.Retry, tx.Funds},
		{-32000, "reject transactions from senders with deployed code", tx.Retry, ""},
		// geth.
		{-32000, "nonce too low: next nonce 4, tx nonce 3", tx.Retry, tx.NonceTooLow},
		{-32000, "nonce too low: address 0xab, tx: 3 state: 4", tx.Retry, tx.NonceTooLow},
		{-32000, "insufficient funds for gas * price + value: balance 0, tx cost 21000, overshot 21000", tx.Retry, tx.Funds},
		{-32000, "intrinsic gas too low: gas 20000, minimum needed 21000", tx.Permanent, ""},
		{-32000, "transaction gas price below minimum: gas tip cap 0, minimum needed 1", tx.Retry, tx.Fee},
		{-32000, "tx fee (2.00 ether) exceeds the configured cap (1.00 ether)", tx.Retry, tx.FeeCap},
		{-32000, "invalid chain id for signer: have 1 want 5", tx.Permanent, ""},
		{-32000, "rlp: value size exceeds available input length", tx.Permanent, ""},
		{-32000, "account limit exceeded: pooled 16 txs", tx.Retry, tx.PoolFull},
		{-32000, "transaction gas limit too high (cap: 16777216, tx: 30000000)", tx.Permanent, ""},
		{-32002, "request timed out", tx.Unknown, tx.Unreachable},
		{-32000, "gas limit reached", tx.Retry, ""},
		{-32000, "transaction exceeds non payment gas limit", tx.Retry, ""},
		// Besu: the code of a gas limit above the block's is also the code of rate limits.
		{-32003, "Intrinsic gas exceeds gas limit", tx.Permanent, ""},
		{-32000, "INTRINSIC_GAS_EXCEEDS_GAS_LIMIT: 21000", tx.Permanent, ""},
		{-32005, "Transaction gas limit exceeds block gas limit", tx.Permanent, ""},
		{-32000, "Transaction fee cap exceeded", tx.Retry, tx.FeeCap},
		{-32004, "Upfront cost exceeds account balance", tx.Retry, tx.Funds},
		{-32009, "Gas price below current base fee", tx.Retry, tx.Fee},
		{-32000, "Known transaction", tx.Known, ""},
		// Nethermind.
		{-32010, "TxGasLimitCapExceeded: Gas limit 16777217 exceeded cap of 16777216.", tx.Permanent, ""},
		{-32010, "intrinsic gas too low: tx gas 21000", tx.Permanent, ""},
		{-32010, "GasLimitExceeded, Gas limit: 30000000, gas limit of rejected tx: 40000000", tx.Permanent, ""},
		{-32010, "InsufficientFunds, Account balance: 1, cumulative cost: 2", tx.Retry, tx.Funds},
		{-32010, "FeeTooLowToCompete", tx.Retry, tx.Fee},
		{-32010, "AlreadyKnown", tx.Known, ""},
		// anvil.
		{-32003, "transaction already imported", tx.Known, ""},
		{-32003, "nonce too low", tx.Retry, tx.NonceTooLow},
		{-32003, "Nonce too high", tx.Retry, tx.NonceTooHigh},
		{-32003, "Insufficient funds for gas * price + value", tx.Retry, tx.Funds},
		{-32003, "insufficient fee token balance: have 0, need 90000", tx.Retry, tx.Funds},
		{-32003, "Tempo tx valid_after (1893456000) must be <= current time + 1h (1795223935)", tx.Retry, tx.TooEarly},
		{-32003, "Tempo tx valid_before (1795220338) must be > current time + 3s (1795220340)", tx.Retry, tx.TooLate},
		{-32003, "native value transfer not allowed in Tempo mode", tx.Permanent, ""},
		{-32003, "invalid chain id for signer", tx.Permanent, ""},
		{-32602, "Failed to decode transaction", tx.Permanent, ""},
		{-32602, "Failed to recover the signer", tx.Permanent, ""},
		{-32000, "intrinsic gas too high -- CallGasCostMoreThanGasLimit", tx.Permanent, ""},
		// Proxies in front of nodes, and unknown errors.
		{-32603, "internal error", tx.Retry, ""},
		{-32005, "limit exceeded", tx.Retry, tx.RateLimited},
		{429, "Your app has exceeded its compute units per second capacity.", tx.Retry, tx.RateLimited},
		{-32000, "Too Many Requests", tx.Retry, tx.RateLimited},
		{-32005, "query returned more than 10000 results", tx.Retry, ""},
		{-32000, "execution reverted: rate limit exceeded", tx.Retry, ""},
		// Texts that have made other systems give up payable transactions.
		{-32000, "invalid", tx.Retry, ""},
		{-32000, "the signature service is expired", tx.Retry, ""},
		{-32000, "nonce key not cached", tx.Retry, ""},
		{-32000, "fee payer is being rebalanced", tx.Retry, ""},
		{-32602, "missing value for required argument 0", tx.Retry, ""},
		{-32000, "", tx.Retry, ""},
	} {
		t.Run(fmt.Sprint(test.code, test.message), func(t *testing.T) {
			if class, cause := Classify(test.code, test.message); class != test.class || cause != test.cause {
				t.Errorf("got %s/%s, want %s/%s", class, cause, test.class, test.cause)
			}
		})
	}
}

func TestGlobs(t *testing.T) {
	for _, test := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true}, {"*b", "ab", true}, {"*b", "ba", false},
		{"a*c", "abc", true}, {"a*c", "ac", true}, {"ab*bc", "abc", false}, {"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c-b", false}, {"*", "", true}, {"a**c", "abc", true}, {"x*", "ab", false},
	} {
		if got := globs(test.pattern, test.s); got != test.want {
			t.Errorf("globs(%q, %q) = %v", test.pattern, test.s, got)
		}
	}
}

func TestLoadRefusesBadRules(t *testing.T) {
	for _, line := range []string{
		"*\texact\ttoo few columns\tretry",
		"x\texact\tsome text\tretry\t-",
		"*\tregexp\tsome text\tretry\t-",
		"*\texact\tno\tretry\t-",
		"*\tany\t-\tretry\t-",
		"*\texact\tsome text\ttaken\t-",
		"*\texact\tsome text\tretry\tbad_mood",
		"*\texact\tsame text\tretry\t-\n*\texact\tsame text\tpermanent\t-",
	} {
		if _, err := load(fstest.MapFS{"messages/x.tsv": {Data: []byte(line)}}); err == nil {
			t.Errorf("loaded %q", line)
		}
	}
}
