package relay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// secret is a part of a webhook's URL.
const secret = "hush-hush"

const plain = `{"chainId": 42431, "key": "%s", "signer": "0x0100000000000000000000000000000000000000", "to": "0x0900000000000000000000000000000000000000", "value": "5"}`

const whole = `{"chainId": 42431, "key": "%s", "pool": "hot", "calls": [
  {"to": "0x0900000000000000000000000000000000000000", "value": "115792089237316195423570985008687907853269984665640564039457584007913129639935", "data": "0xCAFE"},
  {"to": "0x0900000000000000000000000000000000000000"}],
  "gas": {"limit": 90000, "urgency": "fast", "maxFeePerGas": "20000000000", "maxPriorityFeePerGas": "1", "feeToken": "0x0300000000000000000000000000000000000000", "sponsored": true},
  "notBefore": 1800000060, "deadline": 1800003600, "orderingKey": "alice", "nonceKey": {"mode": "ordered"}, "subject": "Alice & Söhne",
  "webhooks": ["https://127.0.0.1/` + secret + `?token=` + secret + `"], "metadata": {"invoice": "4711"}, "simulate": true}`

func txHash(n int) chain.Hash { return chain.Keccak(fmt.Append(nil, "attempt ", n)) }

func blockAt(n uint64) chain.Block {
	return chain.Block{Number: n, Hash: chain.Keccak(fmt.Append(nil, n)), Parent: chain.Keccak(fmt.Append(nil, n-1)), Time: uint64(epoch.Unix()) + n}
}

// Commands in the life of an intent after it was assigned: signed, mined, and final.
func assign() intent.Command {
	return intent.Assign{Assignment: 1, Place: intent.Place{Signer: chain.Address{1}, Nonce: 7}, Token: 1, At: epoch}
}

func attempted(n int) intent.Command {
	return intent.Attempt{Assignment: 1, Kind: intent.First, Hash: txHash(n), Fee: chain.Fee{MaxFee: chain.PriceOf(20), MaxPriorityFee: chain.PriceOf(3)}, At: epoch}
}

func seen(n int, settled bool) intent.Command {
	return intent.Announce{
		Hash: txHash(n), Receipt: chain.Receipt{Block: blockAt(7), Status: 1, GasUsed: 21000, EffectiveGasPrice: "7"},
		Confirmations: []chain.Block{blockAt(7), blockAt(8)}, Settled: settled, At: epoch,
	}
}

// An intent from the request to the end, and the answers on the way.
func TestLife(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		res := s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "life"))
		made := into[shown](t, res, http.StatusAccepted)
		at := "/v1/intents/" + made.ID.String()
		if made.Status != intent.StatusWaiting || res.header.Get("Location") != at || *made.AlreadyKnown {
			t.Errorf("%+v", made)
		}
		got := into[shown](t, s.do(http.MethodGet, at, ""), http.StatusOK)
		if d := cmp.Diff([]webhook{{"https://127.0.0.1"}}, got.Webhooks); d != "" {
			t.Error(d)
		}
		if len(got.Calls) != 2 || got.Calls[0].Data.String() != "0xcafe" || got.Gas.MaxFee.String() != "20000000000" || got.NonceKey.Mode != intent.NonceOrdered ||
			got.Metadata["invoice"] != "4711" || !got.Simulate || got.Deadline != 1800003600 || got.NotBefore != 1800000060 || got.Subject != "Alice & Söhne" || got.Order != "alice" {
			t.Errorf("%+v", got)
		}
		s.command(made.ID, assign(), attempted(1), seen(1, false))
		if got = into[shown](t, s.do(http.MethodGet, at, ""), http.StatusOK); got.Status != intent.StatusMined || *got.TxHash != txHash(1) || got.Place.Nonce != 7 {
			t.Errorf("%+v", got)
		}
		if a := got.Attempts; len(a) != 1 || a[0].TxHash != txHash(1) || a[0].MaxFee != "20" || a[0].MaxPriorityFee != "3" {
			t.Errorf("attempts are listed as %+v", a)
		}
		s.command(made.ID, seen(1, true))
		got = into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "life")), http.StatusAccepted)
		if got.Status != intent.StatusCompleted || !*got.AlreadyKnown || got.Outcome.Block.Number != 7 || len(got.Confirmations) != 2 {
			t.Errorf("%+v", got)
		}
		s.problem(s.do(http.MethodPost, at+"/cancel", ""), 409, "intent-settled")
		told := into[trail](t, s.do(http.MethodGet, at+"/events", ""), http.StatusOK)
		for i, n := range told.Events {
			if n.Sequence != uint64(i)+1 || n.Intent != made.ID {
				t.Errorf("event %d: %+v", i, n)
			}
		}
		later := into[trail](t, s.do(http.MethodGet, at+"/events?after=2", ""), http.StatusOK)
		if d := cmp.Diff(told.Events[2:], later.Events); d != "" || len(told.Events) != int(got.Sequence) {
			t.Errorf("%d events: %s", len(told.Events), d)
		}
		s.project()
		if log := s.log.String(); strings.Contains(log, secret) {
			t.Error("the log tells the secret of a webhook")
		}
		for _, target := range []string{at, at + "/events", "/v1/intents"} {
			if res := s.do(http.MethodGet, target, ""); strings.Contains(string(res.body), secret) {
				t.Errorf("%s tells the secret of a webhook", target)
			}
		}
	})
}

// A wait ends when the milestone is reached, can no longer be reached, or the time is over.
func TestWaits(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		var answers sync.WaitGroup
		ask := func(target, want string) {
			answers.Go(func() {
				res, err := s.send(http.MethodPost, "/v1/intents?timeout=50&wait="+target, fmt.Sprintf(plain, "waited"))
				var got shown
				if err == nil {
					err = json.Unmarshal(res.body, &got)
				}
				if err != nil || res.status != http.StatusOK || !got.Waited.Reached || string(got.Status) != want && target != "assigned" {
					t.Errorf("%s: %v, %d %s", target, err, res.status, res.body)
				}
			})
		}
		ask("completed", "completed")
		id := intent.ID("", intent.From{Signer: &chain.Address{1}}, "waited")
		check(t, s.config.Tail.Until(t.Context(), func(ctx context.Context, w *tail.Wait) (bool, error) {
			r, err := tail.Refresh(ctx, w, intent.Stream(id), handler.Result[intent.State]{}, func(ctx context.Context, _ handler.Result[intent.State]) (handler.Result[intent.State], error) {
				return s.config.Intake.Intents.Load(ctx, intent.Stream(id))
			})
			return r.Version > 0, err
		}))
		ask("assigned", "")
		s.command(id, assign(), attempted(1), seen(1, true))
		answers.Wait()

		got := into[shown](t, s.do(http.MethodPost, "/v1/intents?wait=mined&timeout=0", fmt.Sprintf(plain, "not-yet")), http.StatusAccepted)
		if got.Waited.Reached || got.Waited.Because != "timeout" || got.Status != intent.StatusWaiting {
			t.Errorf("%+v", got.Waited)
		}
		at := "/v1/intents/" + got.ID.String()
		if done := into[shown](t, s.do(http.MethodPost, at+"/cancel", `{"reason": "wrong"}`), http.StatusOK); done.Status != intent.StatusCanceled || done.Outcome.Detail != "wrong" {
			t.Errorf("%+v", done)
		}
		if done := into[shown](t, s.do(http.MethodGet, at+"?wait=completed", ""), http.StatusOK); done.Waited.Reached || done.Waited.Because != "ended" {
			t.Errorf("%+v", done.Waited)
		}
		if done := into[shown](t, s.do(http.MethodGet, at+"?wait=submitted", ""), http.StatusOK); done.Waited.Reached || done.Waited.Because != "ended" {
			t.Errorf("%+v", done.Waited)
		}
		if done := into[shown](t, s.do(http.MethodPost, "/v1/intents?wait=accepted", fmt.Sprintf(plain, "accepted")), http.StatusOK); !done.Waited.Reached {
			t.Errorf("%+v", done.Waited)
		}
		s.problem(s.do(http.MethodGet, at+"?wait=final", ""), 400, "invalid-filter")
		s.problem(s.do(http.MethodGet, at+"?timeout=3", ""), 400, "invalid-filter")
	})
}

// Speeding up and canceling an intent in flight.
func TestWishes(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		made := into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "wishes")), http.StatusAccepted)
		at := "/v1/intents/" + made.ID.String()
		s.command(made.ID, assign(), attempted(1))
		if got := into[shown](t, s.do(http.MethodPost, at+"/speed-up", `{"feePerGas": "19000000000"}`), http.StatusAccepted); got.LeastFee != "19000000000" {
			t.Errorf("%+v", got)
		}
		s.problem(s.do(http.MethodPost, at+"/speed-up", `{"feePerGas": "20000000001"}`), 422, "fee-over-ceiling")
		s.problem(s.do(http.MethodPost, at+"/speed-up", `{"feePerGas": "20000000000"}`), 422, "fee-raise-too-small")
		s.problem(s.do(http.MethodPost, at+"/speed-up", `{"feePerGas": "19000000000"}`, "Content-Type", "text/plain"), 415, "unsupported-media-type")
		if got := into[shown](t, s.do(http.MethodPost, at+"/cancel", ""), http.StatusAccepted); got.Status != intent.StatusCanceling || got.Stopping.Reason != intent.Withdrawn {
			t.Errorf("%+v", got)
		}
		s.problem(s.do(http.MethodPost, at+"/speed-up", `{"feePerGas": "20000000000"}`), 409, "intent-canceling")
		// The no-op is mined, which does not count as mined for the client.
		noOp := attempted(2).(intent.Attempt)
		noOp.Kind = intent.NoOp
		s.command(made.ID, noOp, seen(2, false))
		got := into[shown](t, s.do(http.MethodGet, at+"?wait=mined&timeout=0", ""), http.StatusAccepted)
		if got.Status != intent.StatusCanceling || got.Waited.Reached || *got.TxHash != txHash(2) {
			t.Errorf("%+v %+v", got, got.Waited)
		}
		s.command(made.ID, seen(2, true))
		got = into[shown](t, s.do(http.MethodGet, at+"?wait=mined", ""), http.StatusOK)
		if got.Status != intent.StatusCanceled || got.Waited.Reached || got.Waited.Because != "ended" {
			t.Errorf("%+v %+v", got, got.Waited)
		}
		nobody := "/v1/intents/" + chain.IntentID{1}.String()
		s.problem(s.do(http.MethodPost, nobody+"/cancel", ""), 404, "unknown-intent")
		s.problem(s.do(http.MethodGet, nobody, ""), 404, "unknown-intent")
		s.problem(s.do(http.MethodGet, nobody+"/events", ""), 404, "unknown-intent")
		s.problem(s.do(http.MethodGet, "/v1/intents/0x12", ""), 400, "invalid-intent-id")
		s.problem(s.do(http.MethodPost, at+"/cancel", `{"reason": "a", "reason": "b"}`), 400, "invalid-request")
	})
}

// A client sees and changes only its own intents, with a key that has the scope.
func TestClients(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		keys := access.State{}
		token := func(name string, scopes ...access.Scope) string {
			text, id, digest, err := access.NewToken(rand.Reader)
			check(t, err)
			events, err := keys.Decide(access.Create{Key: access.Key{ID: id, Name: name, Digest: digest, Scopes: scopes}, At: epoch})
			check(t, err)
			keys = keys.Evolve(events[0])
			return text
		}
		shop, other := token("shop", access.Submit, access.Read, access.Cancel), token("other", access.Submit, access.Read, access.Cancel)
		reader, operator := token("shop", access.Read), token("operator", access.Read, access.Cancel, access.Admin)
		s := open(func(c *Config) {
			c.API.Access = rest.Access{Keys: func() access.State { return keys }}
			c.Client = func(k access.Key) string { return k.Name }
		})
		body := fmt.Sprintf(plain, "mine")
		s.problem(s.do(http.MethodPost, "/v1/intents", body), 401, "unauthorized")
		s.problem(s.do(http.MethodPost, "/v1/intents", body, "X-API-Key", reader), 403, "forbidden")
		made := into[shown](t, s.do(http.MethodPost, "/v1/intents", body, "X-API-Key", shop), http.StatusAccepted)
		theirs := into[shown](t, s.do(http.MethodPost, "/v1/intents", body, "X-API-Key", other), http.StatusAccepted)
		if made.Client != "shop" || made.ID == theirs.ID || *theirs.AlreadyKnown {
			t.Errorf("%+v, %+v", made, theirs)
		}
		at := "/v1/intents/" + made.ID.String()
		for _, path := range []string{at, at + "/events"} {
			s.problem(s.do(http.MethodGet, path, "", "X-API-Key", other), 404, "unknown-intent")
			into[any](t, s.do(http.MethodGet, path, "", "X-API-Key", reader), http.StatusOK)
			into[any](t, s.do(http.MethodGet, path, "", "X-API-Key", operator), http.StatusOK)
		}
		s.problem(s.do(http.MethodPost, at+"/cancel", "", "X-API-Key", other), 404, "unknown-intent")
		s.problem(s.do(http.MethodPost, at+"/speed-up", `{"feePerGas": "1"}`, "X-API-Key", other), 404, "unknown-intent")
		s.problem(s.do(http.MethodPost, at+"/cancel", "", "X-API-Key", reader), 403, "forbidden")
		s.project()
		list := func(query, key string) (clients []string) {
			for _, i := range into[page](t, s.do(http.MethodGet, "/v1/intents"+query, "", "X-API-Key", key), http.StatusOK).Intents {
				clients = append(clients, i.Client)
			}
			return clients
		}
		for _, c := range []struct {
			query, key string
			want       []string
		}{
			{"", shop, []string{"shop"}},
			{"?client=shop", shop, []string{"shop"}},
			{"", operator, []string{"other", "shop"}},
			{"?client=other", operator, []string{"other"}},
			{"?key=mine", operator, []string{"other", "shop"}},
			{"?key=mine&signer=0x0100000000000000000000000000000000000000", shop, []string{"shop"}},
		} {
			if d := cmp.Diff(c.want, list(c.query, c.key)); d != "" {
				t.Errorf("%s: %s", c.query, d)
			}
		}
		s.problem(s.do(http.MethodGet, "/v1/intents?client=other", "", "X-API-Key", shop), 403, "forbidden")
		into[shown](t, s.do(http.MethodPost, at+"/cancel", "", "X-API-Key", operator), http.StatusOK)
	})
}

// Lists have filters and pages. An intent that the filters identify is found at once.
func TestList(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		var ids []chain.IntentID
		for i := range 7 {
			form := []string{plain, whole}[i%2]
			ids = append(ids, into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(form, fmt.Sprint("k", i))), http.StatusAccepted).ID)
		}
		list := func(query string) (found []int) {
			for _, i := range into[page](t, s.do(http.MethodGet, "/v1/intents"+query, ""), http.StatusOK).Intents {
				if found = append(found, slices.Index(ids, i.ID)); len(i.Calls) == 0 || i.Calls[0].Data != nil {
					t.Errorf("%s: calls %+v", query, i.Calls)
				}
			}
			return found
		}
		if got := list("?key=k3&pool=hot"); !slices.Equal(got, []int{3}) { // the read model is still empty
			t.Errorf("by its key: %v", got)
		}
		if got := list("?key=k3&pool=hot&status=mined"); len(got) > 0 {
			t.Errorf("what does not fit: %v", got)
		}
		if got := list("?key=k3&pool=cold"); len(got) > 0 {
			t.Errorf("another's: %v", got)
		}
		s.command(ids[2], assign(), attempted(2), seen(2, true))
		s.command(ids[3], assign())
		s.project()
		for query, want := range map[string][]int{
			"": {6, 5, 4, 3, 2, 1, 0}, "?pool=hot": {5, 3, 1}, "?signer=0x0100000000000000000000000000000000000000": {6, 4, 3, 2, 0},
			"?hash=" + txHash(2).String(): {2}, "?status=completed&status=assigned": {3, 2}, "?subject=Alice+%26+S%C3%B6hne": {5, 3, 1},
			"?chainId=1": nil, "?key=k6": {6}, "?limit=2": {6, 5},
		} {
			if d := cmp.Diff(want, list(query)); d != "" {
				t.Errorf("%s: %s", query, d)
			}
		}
		var walked []int
		next := "/v1/intents?limit=3"
		for next != "" {
			res := s.do(http.MethodGet, next, "")
			for _, i := range into[page](t, res, http.StatusOK).Intents {
				walked = append(walked, slices.Index(ids, i.ID))
			}
			next, _, _ = strings.Cut(strings.TrimPrefix(res.header.Get("Link"), "<"), ">")
		}
		if d := cmp.Diff([]int{6, 5, 4, 3, 2, 1, 0}, walked); d != "" {
			t.Error(d)
		}
		cursor := into[page](t, s.do(http.MethodGet, "/v1/intents?limit=3", ""), http.StatusOK).NextCursor
		s.problem(s.do(http.MethodGet, "/v1/intents?pool=hot&cursor="+cursor, ""), 400, "invalid-cursor")
		for query, code := range map[string]string{
			"?limit=0": "invalid-limit", "?limit=201": "invalid-limit", "?chainId=x": "invalid-filter", "?signer=0x1": "invalid-filter", "?hash=1": "invalid-filter",
			"?status=done": "invalid-filter", "?key=": "invalid-filter", "?cursor=x": "invalid-cursor", "?owner=me": "invalid-filter", "?key=a&key=b": "invalid-filter",
			"?key=a&pool=hot&signer=0x0100000000000000000000000000000000000000": "invalid-filter",
		} {
			s.problem(s.do(http.MethodGet, "/v1/intents"+query, ""), 400, code)
		}
	})
}
