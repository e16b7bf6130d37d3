package main_test

import (
	"fmt"
	"testing"
)

// A subscription under one NKG1 key, with one payment signed by an access key. That payment
// joins once the access key is on the chain. All are paid in order, and then the nonces are used
// up.
func TestViemGroup(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		said := map[any]map[string]any{}
		for _, line := range w.script(t, "groups.mjs", s.URL, w.chain.URL()) {
			said[line["step"]] = line
		}
		members := func(step string) (statuses []string) {
			list, _ := said[step]["members"].([]any)
			for i, m := range list {
				m := m.(map[string]any)
				if m["nonce"] != float64(i) {
					t.Errorf("%s: member %d has nonce %v", step, i, m["nonce"])
				}
				statuses = append(statuses, m["status"].(string))
			}
			return statuses
		}
		plan := func(step string) string {
			p, _ := said[step]["cancelPlan"].(map[string]any)
			return fmt.Sprint(p["nonces"], p["alreadyInvalidated"])
		}
		if got := plan("group"); len(members("group")) != 2 || got != "[0 1] false" {
			t.Errorf("at first: %v, %s", said["group"]["members"], got)
		}
		display, _ := said["group"]["display"].(map[string]any)
		if display["scope"] != "PAYROLL" || display["memo"] != "JAN-2026" || display["kind"] != "0x02" {
			t.Errorf("display: %v", display)
		}
		if said["claim"]["groupPending"] == nil || said["claim"]["groupId"] != said["group"]["groupId"] {
			t.Errorf("the claim: %v", said["claim"])
		}
		if said["authorized"]["status"] != "success" || len(members("joined")) != 3 {
			t.Errorf("%v, then %v", said["authorized"], said["joined"])
		}
		if got := fmt.Sprint(members("paid"), plan("paid")); got != "[executed executed executed][0 1 2] true" {
			t.Errorf("at last: %s", got)
		}
		check(t, s.Stop(w.ctx))
	})
}
