package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

func TestSubmit(t *testing.T) {
	var outcomes []string
	s := newStack(t, func(c *Config) { c.Submitted = func(o string) { outcomes = append(outcomes, o) } })
	key := newKey(t)
	raw := signed(t, key, testChain, 7)
	hash := chain.Keccak(raw)
	body := submissionOf(testChain, raw)
	want := fmt.Sprintf(`{"results":[{"ok":true,"txHash":"%s","sender":"%s","nonceKey":"0x0","nonce":7,"eligibleAt":%d,"status":"queued","alreadyKnown":%%v}]}`+"\n",
		hash, strings.ToLower(crypto.PubkeyToAddress(key.PublicKey).Hex()), testTime.Unix())
	for i, known := range []bool{false, true, true} {
		res := s.do(http.MethodPost, "/v1/transactions", body)
		if diff := cmp.Diff(fmt.Sprintf(want, known), string(res.body)); res.status != http.StatusOK || diff != "" {
			t.Errorf("post %d answered %d (want -, got +):\n%s", i, res.status, diff)
		}
	}
	if res := s.do(http.MethodPost, "/v1/transactions", body, "Content-Type", `Application/JSON; charset="UTF-8"`, "Content-Encoding", "identity"); res.status != http.StatusOK {
		t.Errorf("with other words for JSON: %v", res)
	}
	if events := s.recorded(); len(events) != 1 || events[0].Name != "tx.accepted.v1" || events[0].Stream != tx.Stream(testChain, hash) {
		t.Errorf("recorded: %v", events)
	}
	if !slices.Equal(outcomes, []string{"accepted", "known", "known", "known"}) {
		t.Errorf("outcomes: %v", outcomes)
	}
	kept, err := s.config.Submit.Vault.Bytes(t.Context(), payload.Ref{Chain: testChain, Hash: hash})
	if err != nil || !bytes.Equal(kept, raw) {
		t.Errorf("kept %x, %v", kept, err)
	}
}

// Rows 41, 44, 45, 51, 66: each item is answered in its place.
func TestSubmitAnswersEachItem(t *testing.T) {
	s := newStack(t)
	key := newKey(t)
	good := make([][]byte, 6)
	for i := range good {
		good[i] = signed(t, key, testChain, uint64(i))
	}
	large := bytes.Repeat([]byte{2}, s.config.Limits.TransactionBytes+1)
	raws := [][]byte{good[0], {0x7f}, good[1], good[0], large, good[2], signed(t, key, 1, 0), good[3], append(slices.Clone(good[4]), 0), good[5], {}}
	type answer struct {
		known        bool
		code, reason string
		status       int
	}
	want := []answer{
		{}, {code: "invalid-transaction", reason: "type", status: 422}, {}, {known: true},
		{code: "tx-too-large", reason: "tx-too-large", status: 413}, {},
		{code: "wrong-chain", reason: "wrong-chain", status: 422}, {},
		{code: "invalid-transaction", reason: "trailing", status: 422}, {},
		{code: "invalid-transaction", reason: "hex", status: 422},
	}
	var got []answer
	for i, r := range s.submit(raws...) {
		got = append(got, answer{r.AlreadyKnown, r.Problem.Code, r.Problem.Reason, r.Problem.Status})
		if r.OK != (r.Problem.Code == "") || r.OK && r.TxHash != chain.Keccak(raws[i]) {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
		t.Error(diff)
	}
	if events := s.recorded(); len(events) != 5 {
		t.Errorf("%d events were recorded", len(events))
	}
}

// failing is a store that cannot append to some streams.
type failing struct {
	port.Store
	err       func(eventlog.Stream) error
	persisted bool // written although an error is returned
}

func (f failing) Append(ctx context.Context, stream eventlog.Stream, at eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	err := f.err(stream)
	if err == nil || f.persisted {
		a, e := f.Store.Append(ctx, stream, at, events...)
		if err == nil {
			return a, e
		}
	}
	return eventlog.Appended{}, err
}

// Row 49: if the store is down, nothing is half done, and the answer says that the client may
// retry.
func TestSubmitWithoutStore(t *testing.T) {
	raws := make([][]byte, 10)
	key := newKey(t)
	for i := range raws {
		raws[i] = signed(t, key, testChain, uint64(i))
	}
	all := func(eventlog.Stream) bool { return true }
	streams := make([]eventlog.Stream, len(raws))
	for i, raw := range raws {
		streams[i] = tx.Stream(testChain, chain.Keccak(raw))
	}
	slices.Sort(streams)
	some := func(stream eventlog.Stream) bool { return stream <= streams[3] }
	failed := 0
	for _, raw := range raws {
		if some(tx.Stream(testChain, chain.Keccak(raw))) {
			failed++
		}
	}
	unknown := fmt.Errorf("%w: connection reset", eventlog.ErrUnknown)
	for _, tt := range []struct {
		name      string
		fails     func(eventlog.Stream) bool
		err       error
		persisted bool
		status    int
		code      eventlog.Refusal
	}{
		{"closed", all, eventlog.ErrClosed, false, 503, unavailable},
		{"not in time", all, fmt.Errorf("append: %w", context.DeadlineExceeded), false, 503, unavailable},
		{"lost answers, not written", all, unknown, false, 503, rest.OutcomeUnknown},
		{"lost answers, written", all, unknown, true, 503, rest.OutcomeUnknown},
		{"a fault of ours", all, errors.New("secret inside"), false, 500, internal},
		{"some closed", some, eventlog.ErrClosed, false, 200, unavailable},
		{"some lost", some, unknown, true, 200, rest.OutcomeUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			down := true
			s := newStack(t, func(c *Config) {
				c.Submit.Transactions.Store = failing{c.Submit.Transactions.Store, func(stream eventlog.Stream) error {
					if down && tt.fails(stream) {
						return tt.err
					}
					return nil
				}, tt.persisted}
			})
			res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raws...))
			if bytes.Contains(res.body, []byte("secret")) || bytes.Contains(res.body, []byte("reset")) {
				t.Errorf("the inside is told: %s", res.body)
			}
			if tt.status != http.StatusOK {
				wantProblem(t, tt.name, res, tt.status, tt.code)
				if wait := res.header.Get("Retry-After"); (wait == "") == (tt.status == 503) {
					t.Errorf("Retry-After: %q", wait)
				}
			} else {
				var out struct{ Results []result }
				unmarshal(t, res.body, &out)
				for i, r := range out.Results {
					fails := some(tx.Stream(testChain, chain.Keccak(raws[i])))
					if r.OK == fails || fails && (r.Problem.Code != string(tt.code) || !r.Problem.Retryable) {
						t.Errorf("result %d: %+v", i, r)
					}
				}
				if failed == 0 || failed == len(raws) {
					t.Fatalf("%d of %d fail", failed, len(raws))
				}
			}
			// Retrying is safe: each is accepted once.
			down = false
			for i, r := range s.submit(raws...) {
				if !r.OK {
					t.Errorf("repeated: result %d: %+v", i, r)
				}
			}
			if events := s.recorded(); len(events) != len(raws) {
				t.Errorf("%d events were recorded", len(events))
			}
		})
	}
}

// Without the vault nothing is recorded: an event never names bytes that were not stored.
func TestSubmitWithoutVault(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Submit.Vault.Rows = lostRows{c.Submit.Vault.Rows} })
	res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, signed(t, newKey(t), testChain, 0)))
	wantProblem(t, "no vault", res, http.StatusServiceUnavailable, unavailable)
	if events := s.recorded(); len(events) != 0 {
		t.Errorf("%d events were recorded", len(events))
	}
}

type lostRows struct{ commands.PayloadRows }

func (lostRows) Put(context.Context, []payload.Sealed) error { return eventlog.ErrClosed }
