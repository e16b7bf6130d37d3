package delivery

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

const anothersTrace = "00-a11cea11a11cea11a11cea11a11cea11-a11cea11a11cea11-01"

// groupEvents returns the events of groups that one of the askers is shown, as lines.
func (s *shared) groupEvents(name string) (all []followed) {
	s.t.Helper()
	body := s.as(name, http.MethodGet, "/v1/events?after=0&until=head&name=group.", nil, "Accept", "application/x-ndjson").body
	for line := range strings.Lines(string(body)) {
		if !strings.Contains(line, `"name"`) {
			continue // a mark
		}
		var e followed
		unmarshal(s.t, []byte(line), &e)
		if versions := strings.Contains(line, `"version"`); versions != (e.Version != 0) {
			s.t.Errorf("%s is shown %s", name, line)
		}
		all = append(all, e)
	}
	return all
}

// joinAs appends the event by which a transaction joins a group, with the metadata of a join that an
// earlier version of the program recorded for several transactions at once.
func (s *shared) joinAs(hash chain.Hash, m eventlog.Meta) {
	s.t.Helper()
	a := s.stateOf(hash).Accepted
	id := group.ID{Chain: a.Chain, Sender: a.Sender, Group: payroll(1).Group()}
	origin, err := handler.Begin(rand.Reader, m)
	if err != nil {
		s.t.Fatal(err)
	}
	c := group.Join{Members: []group.Joined{{Chain: a.Chain, Sender: a.Sender, Group: id.Group, Hash: hash, NonceKey: payroll(1), Nonce: a.Nonce, At: testTime}}}
	handler := commands.Groups{Store: s.db.Log(), Codec: group.Codec(), Random: rand.Reader}
	if _, err := handler.Handle(s.t.Context(), id.Stream(), c, origin); err != nil {
		s.t.Fatal(err)
	}
}

func hashes(events []followed) (all []chain.Hash) {
	for _, e := range events {
		var joined group.Joined
		_ = json.Unmarshal(e.Data, &joined) // data of other events has no hash
		all = append(all, joined.Hash)
	}
	return all
}

// correlation is the correlation of the events that a request causes.
func correlation(requestID string) eventlog.ID {
	return eventlog.DeriveID(eventlog.Stream("request-"+requestID), eventlog.ID{}, 0)
}

// The event by which a transaction joins its group shows a client neither requests of another
// client, nor the number of members that are not its own.
func TestJoinTellsNothingOfOthers(t *testing.T) {
	s := newShared(t)
	s.as("bob", http.MethodGet, groupsPath(s.sender), nil) // answers when both have joined
	anns := eventlog.Meta{Correlation: correlation("ann-request"), Causation: eventlog.ID{7}, Actor: "grouping", Trace: anothersTrace}
	check := func(name string, want ...chain.Hash) []followed {
		t.Helper()
		got := s.groupEvents(name)
		if d := cmp.Diff(want, hashes(got)); d != "" {
			t.Errorf("%s is shown joins (-want +got):\n%s", name, d)
		}
		return got
	}
	bobs := check("bob", s.bob)
	if m := bobs[0].Meta; m.Correlation != correlation("bob-request") || m.Causation.IsZero() || bobs[0].Version != 0 || !m.Link.IsZero() {
		t.Errorf("bob is shown version %d and %+v", bobs[0].Version, m)
	}
	if m := check("ann", s.ann)[0].Meta; m.Correlation != anns.Correlation || m.Causation.IsZero() {
		t.Errorf("ann is shown %+v", m)
	}
	// A second submission shows nothing of the join before it.
	s.as("bob", http.MethodPost, "/v1/transactions", submissionOf(testChain, s.raw), "X-Request-Id", "bobs-request")
	if after := check("bob", s.bob)[0]; after.Meta != bobs[0].Meta || after.ID != bobs[0].ID {
		t.Errorf("after bob's second submission: %+v, before: %+v", after, bobs[0])
	}
	// A join behind it is shown, without the request of the first submission.
	s.joinAs(s.ann, anns)
	s.joinAs(s.bob, anns) // as it was recorded for both at once
	for _, e := range check("bob", s.bob, s.ann, s.bob)[1:] {
		if m := (eventlog.Meta{Actor: "grouping"}); e.Meta != m || e.Version != 0 {
			t.Errorf("bob is shown version %d and %+v", e.Version, e.Meta)
		}
	}
	// A key that is bound to the sender sees all members, and still no request of another client.
	for _, e := range check("a key bound to the sender", s.ann, s.bob, s.ann, s.bob) {
		if !e.Meta.Correlation.IsZero() || e.Meta.Trace != "" || !e.Meta.Link.IsZero() || e.Version == 0 {
			t.Errorf("a key bound to the sender is shown version %d and %+v", e.Version, e.Meta)
		}
	}
	for _, e := range check("an auditor", s.ann, s.bob, s.ann, s.bob)[2:] {
		if e.Meta.Link.IsZero() || e.Meta.Correlation != anns.Correlation || e.Version == 0 {
			t.Errorf("an auditor is shown version %d and %+v", e.Version, e.Meta)
		}
	}
}

// A component that carries out one client's request shows its id and trace to no other owner, and
// links confirm no guess of anything that a client is not shown.
func TestComponentsPassNoRequestsOn(t *testing.T) {
	s := newShared(t)
	origin, err := handler.Begin(rand.Reader, eventlog.Meta{Correlation: correlation("bob-cancels"), Causation: eventlog.ID{7}, Actor: "canceling", Trace: anothersTrace})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.config.Submit.Transactions.Handle(t.Context(), tx.Stream(testChain, s.ann), tx.Cancel{At: testTime}, origin); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann", "a key bound to the sender", "an auditor"} {
		for _, target := range []string{"/v1/transactions/" + s.ann.String() + "/events", "/v1/events?after=0&until=head&hash=" + s.ann.String()} {
			said := string(s.as(name, http.MethodGet, target, nil, "Accept", "application/x-ndjson").body)
			for _, hidden := range []string{origin.Meta.Correlation.String(), origin.Meta.Causation.String(), anothersTrace, `"link"`} {
				if shown := strings.Contains(said, hidden); shown != (name == "an auditor") {
					t.Errorf("%s is shown %s in %s: %t: %s", name, hidden, target, shown, said)
				}
			}
			if shown := strings.Contains(said, correlation("ann-request").String()); shown != (name != "a key bound to the sender") {
				t.Errorf("%s is shown ann's request: %t", name, shown)
			}
		}
	}
}
