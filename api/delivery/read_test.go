package delivery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// one reads a transaction.
func (s *stack) one(hash chain.Hash) (shown object) {
	s.t.Helper()
	res := s.get("/v1/transactions/" + hash.String())
	if res.status != http.StatusOK {
		s.t.Fatalf("GET %s: %v", hash, res)
	}
	d := json.NewDecoder(bytes.NewReader(res.body))
	d.UseNumber()
	if err := d.Decode(&shown); err != nil {
		s.t.Fatal(err)
	}
	return shown
}

// wantMembers checks some members of an object, written as JSON; null means "absent".
func wantMembers(t testing.TB, shown object, members map[string]string) {
	t.Helper()
	for name, want := range members {
		got, err := json.Marshal(shown[name])
		if err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(want)); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if compact.String() != string(got) {
			t.Errorf("%s is %s, want %s", name, got, compact.String())
		}
	}
}

// A client can read its submission at once, whether or not the read model has it, and sees the
// same afterwards.
func TestReadYourWrites(t *testing.T) {
	s := newStack(t)
	key := newKey(t)
	for i := range uint64(20) {
		raw := signed(t, key, testChain, i)
		hash := s.submit(raw)[0].TxHash
		for _, q := range []string{"", "?chainId=42431"} {
			if res := s.get("/v1/transactions/" + hash.String() + q); res.status != http.StatusOK {
				t.Fatalf("transaction %d%s: %v", i, q, res)
			}
			if res := s.get("/v1/transactions/" + hash.String() + "/events" + q); res.status != http.StatusOK {
				t.Fatalf("events of %d%s: %v", i, q, res)
			}
		}
		wantProblem(t, "on another chain", s.get("/v1/transactions/"+hash.String()+"?chainId=1"), 404, tx.ErrUnknown)
		wantProblem(t, "on another chain", s.get("/v1/transactions/"+hash.String()+"/events?chainId=1"), 404, tx.ErrUnknown)
	}
	hash := chain.Keccak(signed(t, key, testChain, 0))
	if res := s.get("/v1/transactions/0x" + strings.ToUpper(hash.String()[2:])); !bytes.Contains(res.body, []byte(hash.String())) {
		t.Errorf("asked in upper case: %v", res)
	}
	before := s.one(hash)
	s.catchUp()
	after := s.one(hash)
	wantMembers(t, after, map[string]string{"nextActionAt": fmt.Sprint(testTime.Unix())}) // the queue has it now
	delete(after, "nextActionAt")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("folded from the stream (-) and by the projector (+):\n%s", diff)
	}
}

// A transaction on a chain that is no longer served can still be read.
func TestReadOfAChainNoLongerServed(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	s.catchUp()
	s.config.Submit.Decoders = nil
	wantMembers(t, s.one(hash), map[string]string{"chainId": "42431", "status": `"queued"`, "calls": "null"})
	if res := s.get("/v1/transactions/" + hash.String() + "/events"); !bytes.Contains(res.body, []byte("tx.accepted.v1")) {
		t.Errorf("events: %v", res)
	}
}

// The states of a transaction in answers.
func TestTransaction(t *testing.T) {
	s := newStack(t)
	key := newKey(t)
	sender := strings.ToLower(crypto.PubkeyToAddress(key.PublicKey).Hex())
	hash := s.submit(signed(t, key, testChain, 7))[0].TxHash
	at := testTime.Add(3 * time.Second)
	answers := []tx.Answer{
		{Endpoint: "a", Class: tx.Retry, Cause: tx.NonceTooHigh, Code: -32000, Message: `nonce <too> high & "so on"`, Took: 12 * time.Millisecond},
		{Endpoint: "b", Class: tx.Unknown, Cause: tx.Unreachable, Took: time.Second},
	}
	s.handle(hash, tx.Report{Attempt: 1, Answers: answers, At: at})
	s.catchUp()
	shown := s.one(hash)
	wantMembers(t, shown, map[string]string{
		"chainId": "42431", "txHash": fmt.Sprintf("%q", hash), "type": "2", "sender": fmt.Sprintf("%q", sender),
		"signature": `"secp256k1"`, "nonceKey": `"0x0"`, "nonce": "7", "groupId": "null", "nonceKeyInfo": "null",
		"eligibleAt": fmt.Sprint(testTime.Unix()), "expiresAt": "null", "validAfter": "null", "accessKey": "null", "feePayer": "null",
		"status": `"retry_scheduled"`, "finalized": "false", "canceled": "null", "violated": "null", "payloadErased": "null",
		"attempts": "1", "attemptsSummary": `[{"attempt":1,"outcome":"unknown unreachable"}]`,
		"lastAttempt": fmt.Sprintf(`{"answers":[
			{"cause":"nonce_too_high","class":"retry","code":-32000,"endpoint":"a","message":"nonce \u003ctoo\u003e high \u0026 \"so on\"","ms":12},
			{"cause":"unreachable","class":"unknown","endpoint":"b","ms":1000}],"at":%d,"attempt":1}`, at.Unix()),
		"lastBroadcastAt": fmt.Sprint(at.Unix()), "lastError": `"unknown: unreachable"`, "note": `"unknown: unreachable"`,
		"block": "null", "receipt": "null", "acceptedAt": fmt.Sprint(testTime.Unix()), "version": "2",
		"gas": "50000", "fees": `{"maxFeePerGas":"1000000007","maxPriorityFeePerGas":"1"}`,
		"calls": `[{"input":"0xcafe","to":"0x00000000000000000000000000000000000000aa","value":"5"}]`,
	})

	s.elapse(10 * time.Second)
	s.work(hash, tx.Done{Attempts: 5, NextAt: at.Add(time.Minute), SentAt: at.Add(time.Second), Note: "waiting for nonce 3", WaitNonce: 4})
	wantMembers(t, s.one(hash), map[string]string{
		"attempts": "5", "nextActionAt": fmt.Sprint(at.Add(time.Minute).Unix()), "note": `"waiting for nonce 3"`,
		"waitingForNonce": "3", "waitingSince": fmt.Sprint(s.now().Unix()), "lastBroadcastAt": fmt.Sprint(at.Unix() + 1), "version": "2",
	})

	mined := chain.Block{Number: 9, Hash: chain.Hash{9}, Time: uint64(at.Unix())}
	s.handle(hash, tx.SeeReceipt{At: at, Receipt: chain.Receipt{
		Block: mined, Index: 3, Status: 0, GasUsed: 21000, EffectiveGasPrice: "1000000000000000000000", FeePayer: &chain.Address{1}, FeeToken: &chain.Address{2},
	}})
	s.catchUp()
	blockHash := chain.Hash{9}.String()
	wantMembers(t, s.one(hash), map[string]string{
		"status": `"executed"`, "finalized": "false", "nextActionAt": "null", "waitingForNonce": "null", "waitingSince": "null",
		"block": fmt.Sprintf(`{"hash":"%s","number":9,"time":%d}`, blockHash, at.Unix()),
		"receipt": fmt.Sprintf(`{"blockHash":"%s","blockNumber":9,"effectiveGasPrice":"1000000000000000000000","feePayer":"%s","feeToken":"%s","gasUsed":21000,"status":0,"transactionIndex":3}`,
			blockHash, chain.Address{1}, chain.Address{2}),
	})

	s.handle(hash, tx.Finalize{Final: chain.Block{Number: 20, Hash: chain.Hash{20}}, At: at})
	s.handle(hash, tx.Erase{At: at})
	if err := s.db.Payloads().Erase(t.Context(), testChain, []chain.Hash{hash}); err != nil {
		t.Fatal(err)
	}
	s.catchUp()
	wantMembers(t, s.one(hash), map[string]string{
		"finalized": "true", "payloadErased": "true", "gas": "null", "fees": "null", "calls": "null", "version": "5",
	})

	s.handle(hash, tx.Retire{At: at})
	s.catchUp()
	p := wantProblem(t, "retired", s.get("/v1/transactions/"+hash.String()), 404, tx.ErrUnknown)
	if !strings.Contains(p.Detail, "retention") {
		t.Errorf("detail: %s", p.Detail)
	}
	if res := s.get("/v1/transactions/" + hash.String() + "/events"); res.status != http.StatusOK {
		t.Errorf("events of a retired one: %v", res)
	}
}

// work leases a transaction's row and returns it with the result of an attempt.
func (s *stack) work(hash chain.Hash, done tx.Done) {
	s.t.Helper()
	leased, _, err := s.db.Work().Lease(s.t.Context(), testChain, "test", time.Minute, 100, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	if !slices.ContainsFunc(leased, func(w tx.Work) bool { return w.Hash == hash }) {
		s.t.Fatalf("%s is not due", hash)
	}
	done.Chain, done.Hash = testChain, hash
	if err := s.db.Work().Done(s.t.Context(), "test", []tx.Done{done}); err != nil {
		s.t.Fatal(err)
	}
}

// Bytes that cannot be decrypted do not hide the recorded fields.
func TestTransactionWithoutVault(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	other, err := payload.NewMaster(bytes.Repeat([]byte{8}, payload.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	s.config.Submit.Vault.Master = other
	wantMembers(t, s.one(hash), map[string]string{"status": `"queued"`, "gas": "null", "calls": "null"})
}

// The audit trail is the events of the log, byte for byte.
func TestEvents(t *testing.T) {
	s := newStack(t)
	raw := signed(t, newKey(t), testChain, 0)
	const id, trace = "0c8d0f0e-7c1e-4a5b-9c3f-0d4f5b8b2a11", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raw), "X-Request-Id", id, "Traceparent", trace)
	if res.header.Get("X-Request-Id") != id || res.header.Get("Traceparent") != trace {
		t.Errorf("headers: %v", res.header)
	}
	hash := chain.Keccak(raw)
	for n := 1; n <= 3; n++ {
		s.handle(hash, tx.Report{Attempt: n, At: testTime, Answers: []tx.Answer{
			{Endpoint: "a", Class: tx.Retry, Message: strings.Repeat("<&>\u2028", n) + `"quoted"`},
		}})
	}
	// Another program may have written characters that encoding/json would escape.
	plain := eventlog.Event{ID: eventlog.ID{1}, Name: "tx.plain.v1", Data: []byte(`{"reason":"<a> & b"}`)}
	stream := tx.Stream(testChain, hash)
	if _, err := s.db.Log().Append(t.Context(), stream, eventlog.Version(len(s.recorded())), plain); err != nil {
		t.Fatal(err)
	}
	recorded := s.recorded()
	var out struct {
		ChainID chain.ID   `json:"chainId"`
		TxHash  chain.Hash `json:"txHash"`
		Events  []struct {
			ID       eventlog.ID       `json:"id"`
			Name     string            `json:"name"`
			Version  eventlog.Version  `json:"version"`
			Position eventlog.Position `json:"position"`
			At       string            `json:"at"`
			Data     json.RawMessage   `json:"data"`
			Meta     eventlog.Meta     `json:"meta"`
		} `json:"events"`
		HasMore bool `json:"hasMore"`
	}
	res = s.get("/v1/transactions/" + hash.String() + "/events")
	unmarshal(t, res.body, &out)
	if out.ChainID != testChain || out.TxHash != hash || out.HasMore || len(out.Events) != len(recorded) || len(recorded) < 3 {
		t.Fatalf("answered %s", res.body)
	}
	for i, e := range out.Events {
		r := recorded[i]
		if e.ID != r.ID || e.Name != r.Name || e.Version != r.Version || e.Position != r.Position || e.Meta != r.Meta ||
			e.At != r.At.UTC().Format(time.RFC3339Nano) {
			t.Errorf("event %d is %+v, recorded was %+v", i, e, r)
		}
		if !bytes.Contains(res.body, append([]byte(`"data":`), r.Data...)) {
			t.Errorf("event %d is not shown as recorded: %s", i, r.Data)
		}
	}
	if m := out.Events[0].Meta; m.Actor != "api" || m.Trace != trace || m.Correlation.String() != id {
		t.Errorf("meta of the first: %+v", m)
	}
	res = s.get("/v1/transactions/" + hash.String() + "/events?after=1")
	unmarshal(t, res.body, &out)
	if len(out.Events) != len(recorded)-1 || out.Events[0].Version != 2 {
		t.Errorf("after 1: %s", res.body)
	}
	for _, after := range []string{"100", "9223372036854775807"} {
		if res := s.get("/v1/transactions/" + hash.String() + "/events?after=" + after); !bytes.Contains(res.body, []byte(`"events":[]`)) {
			t.Errorf("after %s: %v", after, res)
		}
		wantProblem(t, "unknown", s.get("/v1/transactions/"+chain.Hash{1}.String()+"/events?after="+after), 404, tx.ErrUnknown)
	}
}

// A long trail comes in pages.
func TestEventsInPages(t *testing.T) {
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	s.flipFlop(hash, eventsMax)
	target := "/v1/transactions/" + hash.String() + "/events"
	var versions []eventlog.Version
	pages := 0
	for target != "" {
		res := s.get(target)
		var out trail
		unmarshal(t, res.body, &out)
		for _, e := range out.Events {
			versions = append(versions, e.Version)
		}
		link := next(t, res)
		if (link != "") != out.HasMore || (out.NextCursor != "") != out.HasMore {
			t.Errorf("hasMore %v, next %q, cursor %q", out.HasMore, link, out.NextCursor)
		}
		if target = ""; out.HasMore {
			target = "/v1/transactions/" + hash.String() + "/events?cursor=" + out.NextCursor
			if byLink, byCursor := s.get(link), s.get(target); !bytes.Equal(byLink.body, byCursor.body) {
				t.Errorf("by Link %s\nby cursor %s", byLink.body, byCursor.body)
			}
			wantProblem(t, "both", s.get(target+"&after=1"), 400, rest.ErrInvalidFilter)
			other := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
			wantProblem(t, "another list's", s.get("/v1/transactions/"+other.String()+"/events?cursor="+out.NextCursor), 400, rest.ErrInvalidCursor)
		}
		pages++
	}
	want := make([]eventlog.Version, eventsMax+1)
	for i := range want {
		want[i] = eventlog.Version(i + 1)
	}
	if pages != 2 || !slices.Equal(versions, want) {
		t.Errorf("%d pages, %d events", pages, len(versions))
	}
}

// flipFlop records n events by which a transaction is mined and reorged in turn.
func (s *stack) flipFlop(hash chain.Hash, n int) {
	s.t.Helper()
	a, b := chain.Block{Number: 5, Hash: chain.Hash{1}}, chain.Block{Number: 5, Hash: chain.Hash{2}}
	stream, at := tx.Stream(testChain, hash), eventlog.Version(1)
	for range n / eventlog.MaxAppend {
		events := make([]eventlog.Event, eventlog.MaxAppend)
		for i := range events {
			var fact tx.Event = tx.Mined{Receipt: chain.Receipt{Block: a, Status: 1}, At: testTime}
			if i%2 == 1 {
				fact = tx.Reorged{Was: a, Now: b, At: testTime}
			}
			name, data, err := tx.Codec().Encode(fact)
			if err != nil {
				s.t.Fatal(err)
			}
			events[i] = eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{byte(at >> 8), byte(at)}, i), Name: name, Data: data}
		}
		appended, err := s.db.Log().Append(s.t.Context(), stream, at, events...)
		if err != nil {
			s.t.Fatal(err)
		}
		at = appended.Version
	}
}

// next is the target of the Link header; it never contains a host.
func next(t testing.TB, res response) string {
	t.Helper()
	link := res.header.Get("Link")
	if link == "" {
		return ""
	}
	target, ok := strings.CutPrefix(link, "<")
	target, rel, ok2 := strings.Cut(target, ">; ")
	if !ok || !ok2 || rel != `rel="next"` || !strings.HasPrefix(target, "/v1/") {
		t.Fatalf("Link: %s", link)
	}
	return target
}

// A database failure is answered with 503, without internals.
func TestReadWithoutDatabase(t *testing.T) {
	s := newStack(t, func(c *Config) {
		c.Transient = func(err error) bool { return strings.HasSuffix(err.Error(), "sql: database is closed") }
	})
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	if err := s.config.Query.DB.Close(); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{
		"/v1/transactions", "/v1/transactions/" + hash.String(), "/v1/transactions/" + hash.String() + "/events",
	} {
		res := s.get(target)
		wantProblem(t, target, res, http.StatusServiceUnavailable, unavailable)
		if strings.Contains(string(res.body), "sql") || res.header.Get("Retry-After") == "" {
			t.Errorf("%s: %v %v", target, res, res.header)
		}
	}
}
