package relay

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// unkeyed is an intent without an idempotency key.
const unkeyed = `{"chainId": 42431, "pool": "hot", "to": "0x0900000000000000000000000000000000000000", "value": "%d"}`

// The header names an intent as the member does, and a list's intents by their places.
func TestIdempotencyKeyInTheHeader(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		post := func(body string, status int, header ...string) response {
			t.Helper()
			res := s.do(http.MethodPost, "/v1/intents", body, header...)
			if res.status != status {
				t.Fatalf("%d %s", res.status, res.body)
			}
			return res
		}
		const key = `pay~"1",x\{`
		made := into[shown](t, post(fmt.Sprintf(unkeyed, 5), 202, "Idempotency-Key", key), 202)
		again := into[shown](t, post(fmt.Sprintf(unkeyed, 5), 202, "Idempotency-Key", `"pay~\"1\",x\\{"`), 202)
		if made.Key != key || again.ID != made.ID || !*again.AlreadyKnown || *made.AlreadyKnown {
			t.Errorf("%+v, again %+v", made, again)
		}
		member := strings.Replace(fmt.Sprintf(unkeyed, 5), "{", `{"key": "pay~\"1\",x\\{", `, 1)
		for _, header := range [][]string{nil, {"Idempotency-Key", key}} {
			if got := into[shown](t, post(member, 202, header...), 202); got.ID != made.ID {
				t.Errorf("as a member it names %s, not %s", got.ID, made.ID)
			}
		}
		s.problem(post(fmt.Sprintf(unkeyed, 6), 422, "Idempotency-Key", key), 422, "idempotency-conflict")
		other := into[shown](t, post(fmt.Sprintf(unkeyed, 6), 202, "Idempotency-Key", strings.ToUpper(key)), 202)
		if other.ID == made.ID {
			t.Error("keys of another case are equal")
		}

		list := "[" + fmt.Sprintf(unkeyed, 1) + "," + member + "," + fmt.Sprintf(unkeyed, 1) + "]"
		var keys [2][]string
		for i := range keys {
			for _, one := range into[struct{ Results []taken }](t, post(list, 202, "Idempotency-Key", "list"), 202).Results {
				keys[i] = append(keys[i], one.Intent.Key, one.Intent.ID.String(), fmt.Sprint(*one.Intent.AlreadyKnown))
			}
		}
		want := []string{"list#0", keys[0][1], "false", key, made.ID.String(), "true", "list#2", keys[0][7], "false"}
		if got := strings.Join(keys[0], " "); got != strings.Join(want, " ") || keys[0][1] == keys[0][7] {
			t.Errorf("the list's intents are %s", got)
		}
		if got := strings.Join(keys[1], " "); got != strings.ReplaceAll(strings.Join(want, " "), "false", "true") {
			t.Errorf("the same list again: %s", got)
		}
		s.problem(post(fmt.Sprintf(unkeyed, 5), 400), 400, "invalid-request")
		s.problem(post("["+fmt.Sprintf(unkeyed, 5)+"]", 400), 400, "invalid-request")
		if got := into[page](t, s.do(http.MethodGet, "/v1/intents?pool=hot&key=pay~%221%22,x%5C%7B", ""), 200).Intents; len(got) != 1 || got[0].ID != made.ID {
			t.Errorf("found by its key: %v", got)
		}
	})
}
