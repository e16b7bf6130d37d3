package delivery

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/projections/delivery/owners"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// as sends a request as one of the askers.
func (s *shared) as(name, method, target string, body []byte, header ...string) response {
	s.t.Helper()
	for _, a := range s.askers {
		if a.name == name {
			if a.token != "" {
				header = append(header, "X-API-Key", a.token)
			}
			res, err := s.send(method, target, body, header...)
			if err != nil {
				s.t.Fatal(err)
			}
			return res
		}
	}
	panic("nobody is called " + name)
}

// Only owners see content that is not public yet. An auditor sees that the transaction exists,
// and its calls once a node may have it.
func TestSecretUntilHanded(t *testing.T) {
	s := newShared(t)
	target := "/v1/transactions/" + s.ann.String()
	for _, handed := range []bool{false, true} {
		if handed {
			s.broadcast(s.ann)
		}
		for _, a := range s.askers {
			if !a.reads {
				continue
			}
			var shown map[string]any
			unmarshal(t, s.as(a.name, http.MethodGet, target, nil).body, &shown)
			if _, told := shown["gas"]; told != (handed || a.owns) {
				t.Errorf("handed %t: %s is shown what is in the bytes: %t", handed, a.name, told)
			}
		}
		var held map[string]any
		unmarshal(t, s.as("an operator", http.MethodPost, "/rpc", []byte(`{}`)).body, &held)
		if _, told := held["held"]; told != handed {
			t.Errorf("handed %t: by JSON-RPC an operator is shown the bytes: %t", handed, told)
		}
	}
}

// A group shows each client its own members, and the account's signature stops all members.
func TestGroupOfTwoClients(t *testing.T) {
	s := newShared(t)
	groupID := payroll(0).Group()
	path := groupsPath(s.sender) + "/" + groupID.String()
	type shown struct {
		Members    []struct{ TxHash chain.Hash }
		Canceled   int
		CancelPlan struct{ Nonces []uint64 }
	}
	members := func(res response) (all []string, in shown) {
		t.Helper()
		if res.status != http.StatusOK {
			t.Fatalf("it answers %v", res)
		}
		unmarshal(t, res.body, &in)
		for _, m := range in.Members {
			all = append(all, m.TxHash.String())
		}
		return all, in
	}
	both := []string{s.ann.String(), s.bob.String()}
	for name, want := range map[string][]string{
		"ann": both[:1], "ann's newer key": both[:1], "bob": both[1:], "a key bound to the sender": both, "an auditor": both,
	} {
		got, in := members(s.as(name, http.MethodGet, path, nil))
		if d := cmp.Diff(want, got); d != "" || len(in.CancelPlan.Nonces) != len(want) {
			t.Errorf("%s is shown the nonces %v and the members (-want +got):\n%s", name, in.CancelPlan.Nonces, d)
		}
		var list []struct{ GroupID string }
		unmarshal(t, s.as(name, http.MethodGet, groupsPath(s.sender), nil).body, &list)
		if len(list) != 1 {
			t.Errorf("%s is shown %d groups", name, len(list))
		}
	}
	if res := s.as("no key", http.MethodGet, groupsPath(s.sender), nil); strings.TrimSpace(string(res.body)) != "[]" {
		t.Errorf("without a key %s is shown", res.body)
	}
	// Any client with the signature cancels all members, and its answer lists its own.
	sig := "Signature 0x" + hex.EncodeToString(s.sign(group.Digest(groupID)))
	for _, name := range []string{"no key", "bob", "ann", "an operator"} {
		got, in := members(s.as(name, http.MethodPost, cancelPath(s.sender, groupID, ""), nil, "Authorization", sig))
		want := map[string][]string{"bob": both[1:], "ann": both[:1], "an operator": both}[name]
		if d := cmp.Diff(want, got); d != "" || in.Canceled != 2 {
			t.Errorf("%s cancels %d, and is answered with (-want +got):\n%s", name, in.Canceled, d)
		}
	}
	for _, hash := range []chain.Hash{s.ann, s.bob} {
		if state := s.stateOf(hash); !state.Canceled {
			t.Errorf("%s is %s", hash, state.Status)
		}
	}
	// The canceling client, auditors and the sender's keys see the group's own event.
	for name, want := range map[string]bool{"no key": true, "bob": false, "ann": false, "an auditor": true, "a key bound to the sender": true, "a key bound to another": false} {
		body := s.as(name, http.MethodGet, "/v1/events?after=0&until=head&name=group.canceled", nil, "Accept", "application/x-ndjson").body
		if told := strings.Contains(string(body), "group.canceled.v1"); told != want {
			t.Errorf("%s is told of the cancel: %t", name, told)
		}
	}
}

func (s *shared) stateOf(hash chain.Hash) tx.State {
	s.t.Helper()
	r, err := s.config.Submit.Transactions.Load(s.t.Context(), tx.Stream(testChain, hash))
	if err != nil {
		s.t.Fatal(err)
	}
	return r.State
}

// A client that submits another client's bytes owns the transaction too, from then on. Neither
// client learns about the other.
func TestSubmittedByTwo(t *testing.T) {
	s := newShared(t)
	follow := func(name string) string {
		return string(s.as(name, http.MethodGet, "/v1/events?after=0&until=head&hash="+s.ann.String(), nil, "Accept", "application/x-ndjson").body)
	}
	res := s.as("bob", http.MethodPost, "/v1/transactions", submissionOf(testChain, s.raw), "X-Request-Id", "bobs-request")
	var out struct{ Results []result }
	unmarshal(t, res.body, &out)
	if len(out.Results) != 1 || !out.Results[0].OK || out.Results[0].AlreadyKnown {
		t.Fatalf("bob's first submission: %v", res)
	}
	s.broadcast(s.ann)
	trail := "/v1/transactions/" + s.ann.String() + "/events"
	bobs := s.askers[2]
	for _, said := range []string{string(s.as("bob", http.MethodGet, trail, nil).body), follow("bob")} {
		for _, name := range s.names {
			if strings.Contains(said, name) {
				t.Errorf("bob is told %s: %s", name, said)
			}
		}
		if !strings.Contains(said, "tx.resubmitted.v1") || !strings.Contains(said, "tx.broadcast.v1") {
			t.Errorf("bob is told %s", said)
		}
	}
	if said := follow("bob"); strings.Contains(said, "tx.accepted.v1") {
		t.Errorf("bob is told what was before: %s", said)
	}
	key, _ := s.keys.Keys().Authenticate(bobs.token, testTime)
	for _, said := range []string{string(s.as("ann", http.MethodGet, trail, nil).body), follow("ann")} {
		if strings.Contains(said, "tx.resubmitted.v1") || strings.Contains(said, key.Owner()) || !strings.Contains(said, "ann-and-co") && !strings.Contains(said, `ann-and-co`) {
			t.Errorf("ann is told %s", said)
		}
	}
	for _, said := range []string{string(s.as("an auditor", http.MethodGet, trail, nil).body), follow("an auditor")} {
		if !strings.Contains(said, key.Owner()) || !strings.Contains(said, "tx.accepted.v1") {
			t.Errorf("an auditor is told %s", said)
		}
	}
	if list := s.as("bob", http.MethodGet, "/v1/transactions", nil); list.status != http.StatusOK {
		t.Errorf("bob's list: %v", list)
	}
}

// A transaction that only claims its sender belongs to its submitter, and not to keys bound to
// the sender.
func TestClaimedIsNotTheSenders(t *testing.T) {
	s := newShared(t)
	target := "/v1/transactions/" + s.forged.String()
	for name, want := range map[string]int{"bob": 200, "an auditor": 200, "ann": 404, "a key bound to the sender": 404, "no key": 404} {
		if res := s.as(name, http.MethodGet, target, nil); res.status != want {
			t.Errorf("%s: %v", name, res)
		}
		for _, list := range []string{"/v1/transactions?limit=1000", "/v1/events?after=0&until=head"} {
			body := s.as(name, http.MethodGet, list, nil, "Accept", "application/x-ndjson").body
			if told := strings.Contains(string(body), s.forged.String()); told != (want == 200) {
				t.Errorf("%s finds it in %s: %t", name, list, told)
			}
		}
	}
	s.handle(s.forged, tx.ConfirmGroup{Block: chain.Block{Number: 5, Hash: chain.Hash{5}}, At: testTime})
	if res := s.as("a key bound to the sender", http.MethodGet, target, nil); res.status != 200 {
		t.Errorf("confirmed: %v", res)
	}
}

// If another client submits the same bytes, the first client's answers stay the same, including
// the number of events, versions, tags and times.
func TestAnotherSubmissionShowsNothing(t *testing.T) {
	s := newShared(t)
	target := "/v1/transactions/" + s.ann.String()
	read := func(name, path string) response {
		t.Helper()
		res := s.as(name, http.MethodGet, path, nil, "Accept", "application/x-ndjson")
		if res.status != http.StatusOK {
			t.Fatalf("%s: %v", name, res)
		}
		return res
	}
	versions := func(name, path string) (all []uint64) {
		t.Helper()
		var in struct {
			Events []struct{ Version uint64 }
		}
		unmarshal(t, read(name, path).body, &in)
		for _, e := range in.Events {
			all = append(all, e.Version)
		}
		return all
	}
	follow := "/v1/events?after=0&until=head&hash=" + s.ann.String()
	before := []response{read("ann", target), read("ann", target+"/events"), read("ann", follow), read("ann", "/v1/transactions")}
	s.as("bob", http.MethodPost, "/v1/transactions", submissionOf(testChain, s.raw), "X-Request-Id", "bobs-request")
	if state := s.stateOf(s.ann); len(state.Resubmitters) != 1 {
		t.Fatal("it was not submitted again")
	}
	look := newAPI(s.config)
	if err := look.reached(t.Context(), look.Submit.Transactions.Store.Head, look.checkpoint(transactions.Name), look.checkpoint(owners.Name)); err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{target, target + "/events", follow, "/v1/transactions"} {
		after := read("ann", path)
		if d := cmp.Diff(string(before[i].body), string(after.body)); path != follow && d != "" {
			t.Errorf("%s (-before +after):\n%s", path, d)
		}
		if tag := after.header.Get("ETag"); tag != before[i].header.Get("ETag") {
			t.Errorf("%s: the tag was %q and is %q", path, before[i].header.Get("ETag"), tag)
		}
	}
	s.broadcast(s.ann)
	for _, c := range []struct {
		name, path string
		want       []uint64
	}{
		{"ann", "/events", []uint64{1, 2}},
		{"ann's newer key", "/events?after=1", []uint64{2}},
		{"ann", "/events?after=2", nil},
		{"a key bound to the sender", "/events", []uint64{1, 2}},
		{"bob", "/events", []uint64{1, 2, 3}},
		{"bob", "/events?after=1", []uint64{2, 3}},
		{"an auditor", "/events?after=1", []uint64{2, 3}},
	} {
		if d := cmp.Diff(c.want, versions(c.name, target+c.path)); d != "" {
			t.Errorf("%s, %s (-want +got):\n%s", c.name, c.path, d)
		}
	}
	for name, want := range map[string]uint64{"ann": 2, "bob": 3, "an auditor": 3} {
		var shown struct{ Version uint64 }
		if unmarshal(t, read(name, target).body, &shown); shown.Version != want {
			t.Errorf("%s is shown version %d, want %d", name, shown.Version, want)
		}
	}
	if said := string(read("ann", follow).body); !strings.Contains(said, `"version":2,`) || strings.Contains(said, `"version":3,`) {
		t.Errorf("ann is told %s", said)
	}
}
