package relay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A hundred equal requests at once, at two replicas, create one intent. Another request with
// the same key is refused.
func TestHundredAtOnce(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		first := open()
		replicas := []*stack{first, first}
		if strings.HasSuffix(t.Name(), "postgres") {
			replicas[1] = open()
		}
		var asking sync.WaitGroup
		var mu sync.Mutex
		ids, made := map[chain.IntentID]int{}, 0
		for i := range 100 {
			asking.Go(func() {
				res, err := replicas[i%2].send(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "once"))
				var got shown
				if err == nil {
					err = json.Unmarshal(res.body, &got)
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil || res.status != http.StatusAccepted || got.AlreadyKnown == nil {
					t.Errorf("%v: %d %s", err, res.status, res.body)
					return
				}
				if ids[got.ID]++; !*got.AlreadyKnown {
					made++
				}
			})
		}
		asking.Wait()
		if len(ids) != 1 || made != 1 {
			t.Errorf("%d intents, made %d times", len(ids), made)
		}
		if head, err := first.config.Intake.Intents.Store.Head(t.Context()); head != 1 || err != nil {
			t.Errorf("%d events, %v", head, err)
		}
		first.problem(first.do(http.MethodPost, "/v1/intents", strings.Replace(fmt.Sprintf(plain, "once"), `"5"`, `"6"`, 1)), 422, "idempotency-conflict")
	})
}

// A malformed request is refused and leaves no event.
func TestBadRequests(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open(func(c *Config) { c.API.Limits.BatchItems = 3 })
		good := fmt.Sprintf(plain, "bad")
		with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
		for name, c := range map[string]struct {
			body   string
			status int
			code   string
		}{
			"no JSON":            {"{", 400, "malformed-json"},
			"nothing":            {" ", 400, "malformed-json"},
			"a word":             {`"x"`, 400, "invalid-request"},
			"an empty list":      {"[]", 400, "empty-batch"},
			"too many":           {"[" + strings.Join([]string{good, good, good, good}, ",") + "]", 413, "batch-too-large"},
			"two documents":      {good + good, 400, "malformed-json"},
			"unknown":            {with(`"to"`, `"unknown": 1, "to"`), 400, "invalid-request"},
			"raw bytes":          {with(`"to"`, `"raw": "0x76", "to"`), 400, "invalid-request"},
			"a client":           {with(`"to"`, `"client": "payroll", "to"`), 400, "invalid-request"},
			"twice":              {with(`"to"`, `"key": "bad", "to"`), 400, "invalid-request"},
			"another case":       {with(`"chainId"`, `"chainID"`), 400, "invalid-request"},
			"no chain":           {with(`"chainId": 42431, `, ""), 400, "invalid-request"},
			"no key":             {with(`"key": "bad", `, ""), 400, "invalid-request"},
			"null":               {with(`"5"`, `null`), 400, "invalid-request"},
			"a number":           {with(`"5"`, `5`), 400, "invalid-request"},
			"a fraction":         {with(`42431`, `42431.0`), 400, "invalid-request"},
			"too much":           {with(`"5"`, `"115792089237316195423570985008687907853269984665640564039457584007913129639936"`), 400, "invalid-request"},
			"no address":         {with(`0x09`, `0x0`), 400, "invalid-request"},
			"half a byte":        {with(`"5"`, `"5", "data": "0x123"`), 400, "invalid-request"},
			"calls twice":        {with(`"5"`, `"5", "calls": [{}]`), 400, "invalid-request"},
			"metadata twice":     {with(`"5"`, `"5", "metadata": {"a": "1", "a": "2"}`), 400, "invalid-request"},
			"no flag":            {with(`"5"`, `"5", "simulate": "true"`), 400, "invalid-request"},
			"a bad nonce key":    {with(`"5"`, `"5", "nonceKey": {"mode": "fixed", "key": "0xzz"}`), 400, "invalid-request"},
			"a mode":             {with(`"5"`, `"5", "nonceKey": {"mode": "best"}`), 422, "invalid-intent"},
			"nobody":             {with(`"signer": "0x0100000000000000000000000000000000000000", `, ""), 422, "invalid-intent"},
			"nothing to do":      {with(`, "to": "0x0900000000000000000000000000000000000000", "value": "5"`, ""), 422, "invalid-intent"},
			"a strange key":      {with(`"bad"`, `"ä"`), 400, "invalid-idempotency-key"},
			"a strange chain":    {with(`42431`, `42`), 422, "unsupported-chain"},
			"too late":           {with(`"5"`, `"5", "deadline": 1700000000`), 422, "deadline-passed"},
			"no webhook":         {with(`"5"`, `"5", "webhooks": ["ftp://127.0.0.1/`+secret+`"]`), 422, "webhook-url"},
			"a forbidden host":   {with(`"5"`, `"5", "webhooks": ["https://10.0.0.1/`+secret+`?t=`+secret+`"]`), 422, "webhook-url"},
			"a password":         {with(`"5"`, `"5", "webhooks": ["https://a:`+secret+`@127.0.0.1/"]`), 422, "webhook-url"},
			"too many webhooks":  {with(`"5"`, `"5", "webhooks": [`+strings.Repeat(`"",`, 8)+`""]`), 413, "intent-too-large"},
			"too many calls":     {with(`"to": "0x0900000000000000000000000000000000000000", "value": "5"`, `"calls": [`+strings.Repeat(`{},`, 32)+`{}]`), 413, "intent-too-large"},
			"a list in the list": {"[[" + good + "]]", 400, "invalid-request"},
		} {
			res := s.do(http.MethodPost, "/v1/intents", c.body)
			s.problem(res, c.status, c.code)
			if t.Failed() {
				t.Fatalf("%s: %s", name, c.body)
			}
			if strings.Contains(string(res.body), secret) {
				t.Errorf("%s: the answer tells a secret: %s", name, res.body)
			}
		}
		s.problem(s.do(http.MethodPost, "/v1/intents", good, "Idempotency-Key", "another"), 400, "invalid-idempotency-key")
		s.problem(s.do(http.MethodPost, "/v1/intents", good, "Idempotency-Key", "a b"), 400, "invalid-idempotency-key")
		s.problem(s.do(http.MethodPost, "/v1/intents?sync=1", good), 400, "invalid-filter")
		if head, err := s.config.Intake.Intents.Store.Head(t.Context()); head != 0 || err != nil {
			t.Errorf("%d events are recorded, %v", head, err)
		}
		if strings.Contains(s.log.String(), secret) {
			t.Error("the log tells the secret of a webhook")
		}
	})
}

// Each item of a batch is answered in its place.
func TestBatch(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		body := "[" + strings.Join([]string{fmt.Sprintf(plain, "a"), strings.Replace(fmt.Sprintf(plain, "b"), "42431", "1", 1), fmt.Sprintf(whole, "c"), fmt.Sprintf(plain, "a")}, ",") + "]"
		got := into[struct {
			Results []struct {
				OK      bool
				Intent  *shown
				Problem *rest.Problem
			}
		}](t, s.do(http.MethodPost, "/v1/intents?wait=assigned&timeout=0", body), http.StatusAccepted)
		for i, r := range got.Results {
			switch {
			case i == 1 && (r.OK || r.Problem.Code != "unsupported-chain"), i != 1 && (!r.OK || r.Intent.Waited.Because != "timeout"):
				t.Errorf("%d: %+v", i, r)
			case i != 1 && r.Intent.Key != []string{"a", "", "c", "a"}[i]:
				t.Errorf("%d: %s is answered", i, r.Intent.Key)
			}
		}
		if first, last := got.Results[0].Intent, got.Results[3].Intent; first.ID != last.ID || *first.AlreadyKnown || !*last.AlreadyKnown {
			t.Error("the same wish is two intents, or the first of two was known before")
		}
		into[results](t, s.do(http.MethodPost, "/v1/intents", "["+strings.Replace(fmt.Sprintf(plain, "d"), "42431", "1", 1)+"]"), http.StatusOK)
	})
}
