package delivery

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// A client that got a transaction's acceptance finds the transaction in its group.
func TestGroupShowsWhatWasAccepted(t *testing.T) {
	s := grouped(t)
	for n := range uint64(25) {
		hash := s.submit(payment(payroll(0), n))[0].TxHash
		if list := s.groupList(""); len(list) != 1 {
			t.Fatalf("%d groups after transaction %d", len(list), n)
		}
		shown := s.groupShown(groupPath(payroll(0)))
		if len(shown.Members) != int(n)+1 || shown.Members[n].TxHash != hash || shown.Members[n].Status != tx.StatusQueued {
			t.Fatalf("after transaction %d: %+v", n, shown.Members)
		}
	}
}

func TestListGroups(t *testing.T) {
	s := grouped(t)
	s.submit(payment(payroll(0), 1), payment(payroll(0), 2), payment(payroll(0), 3))
	s.groupList("") // makes them join: groups that join in one step do so in any order
	elsewhere := func(c *chain.Signed) { c.Chain = 4217 }
	s.do("POST", "/v1/transactions", submissionOf(4217, payment(payroll(0), 9, elsewhere)))
	s.groupList("")
	s.submit(payment(payroll(1), 5))
	s.submit(payment(chain.NonceKey{31: 1}, 0), payment(chain.NonceKey{}, 0)) // in no group
	hash := chain.Keccak(payment(payroll(0), 1))
	s.handle(hash, tx.SeeReceipt{Receipt: chain.Receipt{Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Status: 1}, At: testTime})

	at := func(day int) float64 { return float64(testTime.Unix() + int64(day)*24*60*60) }
	of := func(id int, key chain.NonceKey, number string, start, end, next int) object {
		return object{
			"chainId": float64(id), "groupId": key.Group().String(), "nonceKey": key.String(),
			"display": object{"kind": "0x02", "scope": "PAYROLL", "group": number, "memo": "JAN-2026"},
			"startAt": at(start), "endAt": at(end), "nextPaymentAt": at(next),
		}
	}
	first, other, second := of(testChain, payroll(0), "3906", 1, 3, 2), of(4217, payroll(0), "3906", 9, 9, 9), of(testChain, payroll(1), "3907", 5, 5, 5)
	check := func(query string, want ...object) {
		t.Helper()
		if d := cmp.Diff(want, s.groupList(query)); d != "" {
			t.Errorf("%s (-want +got):\n%s", query, d)
		}
	}
	check("", second, other, first)
	check("?chainId=4217", other)
	check("?active=false&limit=2", second, other)
	s.elapse(3 * 24 * time.Hour)
	check("?active=true", second, other)
	check("?active=true&chainId=42431", second)
	s.elapse(30 * 24 * time.Hour)
	check("?active=true", []object{}...)
	if res := s.get(groupsPath(chain.Address{9})); res.status != 200 || strings.TrimSpace(string(res.body)) != "[]" {
		t.Errorf("a sender without groups: %s", res)
	}
	for _, n := range []uint64{2, 3} {
		s.handle(chain.Keccak(payment(payroll(0), n)), tx.Cancel{Reason: "owner", At: testTime})
	}
	delete(first, "nextPaymentAt") // the first is executed, the others are canceled
	check("", second, other, first)
}

// Pages link to the next page, for groups and for members.
func TestGroupPages(t *testing.T) {
	s := grouped(t)
	const count = 7
	for n := range byte(count) {
		s.submit(payment(payroll(n), 0), payment(payroll(0), uint64(count-n)))
		s.groupList("") // makes them join: groups that join in one step do so in any order
	}
	var ids []string
	for target, pages := groupsPath(owner)+"?limit=3&active=false", 0; target != ""; pages++ {
		res := s.get(target)
		var list []object
		unmarshal(t, res.body, &list)
		for _, g := range list {
			ids = append(ids, g["groupId"].(string))
		}
		if target = next(t, res); (target == "") != (pages == 2) || pages > 2 {
			t.Fatalf("page %d leads to %q", pages, target)
		}
	}
	var want []string
	for n := count - 1; n >= 0; n-- {
		want = append(want, payroll(byte(n)).Group().String())
	}
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("groups (-want +got):\n%s", d)
	}
	ids = nil
	for target := groupsPath(owner) + "?limit=3&form=page"; target != ""; {
		res := s.get(target)
		var page groupsPage
		unmarshal(t, res.body, &page)
		for _, g := range page.Groups {
			ids = append(ids, g.GroupID.String())
		}
		if page.HasMore != (page.NextCursor != "") || next(t, res) != "" && !strings.Contains(next(t, res), "form=page") {
			t.Errorf("%s: %v, %s", target, page, next(t, res))
		}
		if target = ""; page.HasMore {
			target = groupsPath(owner) + "?limit=3&form=page&cursor=" + page.NextCursor
		}
	}
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("groups of pages (-want +got):\n%s", d)
	}
	wantProblem(t, "another form", s.get(groupsPath(owner)+"?form=table"), 400, rest.ErrInvalidFilter)
	var nonces []uint64
	for target := groupPath(payroll(0)) + "?limit=3"; target != ""; {
		res := s.get(target)
		shown := s.groupShown(target)
		for _, m := range shown.Members {
			nonces = append(nonces, m.Nonce)
		}
		if len(shown.CancelPlan.Nonces) != count+1 || (shown.NextCursor == "") != (next(t, res) == "") {
			t.Errorf("a page with the plan %+v and the cursor %q", shown.CancelPlan, shown.NextCursor)
		}
		target = next(t, res)
	}
	if !slices.Equal(nonces, []uint64{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("members %v", nonces)
	}
	_, cursor, _ := strings.Cut(next(t, s.get(groupsPath(owner)+"?limit=3")), "cursor=")
	cursor, _, _ = strings.Cut(cursor, "&")
	for _, target := range []string{
		groupsPath(owner) + "?active=true&cursor=" + cursor, groupsPath(chain.Address{1}) + "?cursor=" + cursor,
		groupPath(payroll(0)) + "?cursor=" + cursor, "/v1/transactions?cursor=" + cursor,
	} {
		wantProblem(t, target, s.get(target), 400, rest.ErrInvalidCursor)
	}
}

// The same sender may use the same group id on several chains.
func TestGroupOnTwoChains(t *testing.T) {
	s := grouped(t)
	s.submit(payment(payroll(0), 1))
	s.do("POST", "/v1/transactions", submissionOf(4217, payment(payroll(0), 2, func(c *chain.Signed) { c.Chain = 4217 })))
	p := wantProblem(t, "no chain named", s.get(groupPath(payroll(0))), 400, ErrAmbiguousChain)
	if !strings.Contains(p.Detail, "[4217 42431]") || !strings.Contains(p.Detail, "chainId") {
		t.Errorf("detail %q", p.Detail)
	}
	for id, nonce := range map[string]uint64{"42431": 1, "4217": 2} {
		shown := s.groupShown(groupPath(payroll(0)) + "?chainId=" + id)
		if len(shown.Members) != 1 || shown.Members[0].Nonce != nonce {
			t.Errorf("on chain %s: %+v", id, shown.Members)
		}
	}
	wantProblem(t, "a third chain", s.get(groupPath(payroll(0))+"?chainId=1"), 404, group.ErrUnknown)
}

// inNameOf returns the function that reads nonces in a client's name.
func inNameOf(r *rpc.Reader) func(client string) Nonces {
	return func(client string) Nonces { return r.OnBehalf(client) }
}

// withNonces starts a chain with a node, and configures the API to ask it.
func withNonces(t testing.TB) (*chaintest.Chain, *httptest.Server, func(*Config)) {
	t.Helper()
	c := chaintest.New(chaintest.Options{Chain: testChain, Decode: chaintest.DecodePlain, Now: func() time.Time { return testTime.AddDate(1, 0, 0) }})
	t.Cleanup(c.Close)
	server := httptest.NewServer(c.Node("a"))
	t.Cleanup(server.Close)
	pool, err := rpc.Open(t.Context(), rpc.Config{Chain: testChain, Endpoints: []rpc.Endpoint{{Name: "a", URL: server.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return c, server, func(config *Config) {
		config.Groups.Nonces = map[chain.ID]func(string) Nonces{testChain: inNameOf(pool.Reader())}
	}
}

func TestCancelPlan(t *testing.T) {
	c, server, asked := withNonces(t)
	s := grouped(t, asked, func(c *Config) { c.Submit.Grouping = commands.GroupAll })
	key := payroll(0)
	s.submit(payment(key, 1), payment(key, 0), payment(key, 1, func(t *chain.Signed) { t.Gas++ }))
	plan := func() string {
		t.Helper()
		p := s.groupShown(groupPath(key)).CancelPlan
		if p.NonceKey != key.String() || !cmp.Equal(p.Nonces, []uint64{0, 1}) {
			t.Errorf("plan %+v", p)
		}
		if p.AlreadyInvalidated == nil || p.CurrentNonce == nil {
			return p.Reason
		}
		return fmt.Sprintf("%v at %d", *p.AlreadyInvalidated, *p.CurrentNonce)
	}
	rival := func(nonce uint64) {
		t.Helper()
		if _, err := c.Mine(payment(key, nonce, func(t *chain.Signed) { t.Gas += 7 })); err != nil {
			t.Fatal(err)
		}
	}
	if got := plan(); got != "false at 0" {
		t.Errorf("nothing used: %s", got)
	}
	rival(0)
	if got := plan(); got != "false at 1" {
		t.Errorf("half used: %s", got)
	}
	rival(1)
	if got := plan(); got != "true at 2" {
		t.Errorf("all used: %s", got)
	}
	expiring := func(t *chain.Signed) { t.Window.Before = uint64(testTime.Unix()) + 20 }
	s.submit(payment(chain.ExpiringKey, 0, expiring))
	if p := s.groupShown(groupPath(chain.ExpiringKey)).CancelPlan; len(p.Nonces) != 0 || p.AlreadyInvalidated != nil || !strings.Contains(p.Reason, "expiring") {
		t.Errorf("the expiring key: %+v", p)
	}
	server.CloseClientConnections()
	server.Close()
	if got := plan(); !strings.Contains(got, "no node") {
		t.Errorf("no node: %s", got)
	}
}

// A member whose predecessor is missing shows the nonce that the chain waits for.
func TestMemberWaits(t *testing.T) {
	s := grouped(t)
	hash := s.submit(payment(payroll(0), 0), payment(payroll(0), 3, func(t *chain.Signed) { t.Window.After = 0 }))[1].TxHash
	s.fed()
	s.work(hash, tx.Done{Attempts: 1, NextAt: testTime.Add(time.Hour), WaitNonce: 1 + 1})
	for _, m := range s.groupShown(groupPath(payroll(0))).Members {
		waits := m.WaitingForNonce != nil && *m.WaitingForNonce == 1 && m.WaitingSince == testTime.Unix()
		if waits != (m.TxHash == hash) {
			t.Errorf("member %+v", m)
		}
	}
}

// Members beyond a full window also show the nonce that they wait for.
func TestParkedMembersWait(t *testing.T) {
	s := grouped(t)
	var raws [][]byte
	for n := range uint64(60) {
		raws = append(raws, payment(payroll(0), n+5, func(t *chain.Signed) { t.Window.After = 0 }))
	}
	s.submit(raws...)
	s.fed()
	parked := 0
	for _, m := range s.groupShown(groupPath(payroll(0))).Members {
		if m.Parked {
			parked++
		}
		if waits := m.WaitingForNonce != nil && *m.WaitingForNonce < m.Nonce && m.WaitingSince == testTime.Unix(); waits != m.Parked {
			t.Errorf("member %+v", m)
		}
	}
	if parked == 0 {
		t.Error("nobody is parked")
	}
}

// A transaction signed by a stranger's access key in a sender's name is not in the sender's
// group.
func TestClaimedGroup(t *testing.T) {
	s := grouped(t)
	key := payroll(0)
	claim := s.submit(payment(key, 0, func(t *chain.Signed) {
		t.Signature, t.AccessKey, t.AccessKind = chain.Keychain, &chain.Address{7}, chain.P256
	}))[0].TxHash
	pending := func() any {
		t.Helper()
		var shown object
		unmarshal(t, s.get("/v1/transactions/"+claim.String()).body, &shown)
		if shown["groupId"] != key.Group().String() {
			t.Errorf("groupId %v", shown["groupId"])
		}
		return shown["groupPending"]
	}
	list := func(filter string) int {
		t.Helper()
		var p struct{ Transactions []object }
		unmarshal(t, s.get("/v1/transactions?"+filter).body, &p)
		return len(p.Transactions)
	}
	inGroup, inNone := "sender="+owner.String()+"&groupId="+key.Group().String(), "ungrouped=true"
	wantProblem(t, "only claimed", s.get(groupPath(key)), 404, group.ErrUnknown)
	if got, want := pending(), (object{"reason": notAskedYet, "since": float64(testTime.Unix())}); !cmp.Equal(got, want) {
		t.Errorf("not asked: %v, want %v", got, want)
	}
	s.handle(claim, tx.DoubtGroup{Reason: "the account has not authorized the access key", At: testTime})
	if groups := s.groupList(""); len(groups) != 0 {
		t.Errorf("groups %v", groups)
	}
	if got := pending().(object)["reason"]; got != "the account has not authorized the access key" {
		t.Errorf("doubted: %v", got)
	}
	if list(inGroup) != 0 || list(inNone) != 1 {
		t.Errorf("pending: %d in the group, %d in none", list(inGroup), list(inNone))
	}
	s.handle(claim, tx.ConfirmGroup{Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, At: testTime})
	s.joined()
	if shown := s.groupShown(groupPath(key)); len(shown.Members) != 1 || shown.Members[0].TxHash != claim {
		t.Errorf("confirmed: %+v", shown)
	}
	if pending() != nil || list(inGroup) != 1 || list(inNone) != 0 {
		t.Errorf("confirmed: %v, %d in the group, %d in none", pending(), list(inGroup), list(inNone))
	}
}

func TestBadGroupRequests(t *testing.T) {
	s := grouped(t)
	s.submit(payment(payroll(0), 0))
	good, id := groupsPath(owner), payroll(0).Group().String()
	for target, want := range map[string]eventlog.Refusal{
		good + "/" + id[2:]:                                ErrInvalidGroupID,
		good + "/0x12":                                     ErrInvalidGroupID,
		good + "/" + id + "?active=true":                   rest.ErrInvalidFilter,
		good + "/" + id + "?limit=1001":                    rest.ErrInvalidLimit,
		good + "/" + id + "?cursor=x":                      rest.ErrInvalidCursor,
		"/v1/senders/0x12/groups":                          rest.ErrInvalidAddress,
		"/v1/senders/'%20OR%201=1--/groups/" + id:          rest.ErrInvalidAddress,
		"/v1/senders/" + owner.String()[2:] + "/groups":    rest.ErrInvalidAddress,
		good + "?active=yes":                               rest.ErrInvalidFilter,
		good + "?chainId=0":                                rest.ErrInvalidFilter,
		good + "?limit=0":                                  rest.ErrInvalidLimit,
		good + "?cursor=x":                                 rest.ErrInvalidCursor,
		good + "?sender=" + owner.String():                 rest.ErrInvalidFilter,
		"/v1/transactions?ungrouped=true&groupId=" + id:    rest.ErrInvalidFilter,
		"/v1/transactions?status=queued&status=nonsense":   rest.ErrInvalidFilter,
		"/v1/transactions?sender=a&sender=b&groupId=" + id: rest.ErrInvalidFilter,
	} {
		wantProblem(t, target, s.ask(target), 400, want)
	}
	wantProblem(t, "nobody's", s.get(good+"/0x00112233445566778899aabbccddeeff"), 404, group.ErrUnknown)
	upper := "/v1/senders/0x" + strings.ToUpper(owner.String()[2:]) + "/groups/0x" + strings.ToUpper(id[2:])
	if res := s.get(upper); res.status != 200 {
		t.Errorf("upper-case digits: %s", res)
	}
}

// If the readers are stuck, the answer is an error and not an empty list.
func TestGroupsCatchingUp(t *testing.T) {
	s := newStack(t, plain)
	s.submit(payment(payroll(0), 0))
	res := s.get(groupsPath(owner))
	p := wantProblem(t, "nobody groups", res, 503, catchingUp)
	if !p.Retryable || res.header.Get("Retry-After") == "" {
		t.Errorf("%s", res)
	}
}
