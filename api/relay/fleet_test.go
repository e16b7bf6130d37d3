package relay

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/projections/relay/lanes"
)

// Signers of tests: annie is in the pool hot, bob in cold.
var (
	annie, bob = chain.Address{1}, chain.Address{2}
	laneRoute  = "/v1/lanes/{chain}/{address}/{nonceKey}"
	annieLane  = fmt.Sprintf("/v1/lanes/%d/%s/0x0", testChain, annie)
)

func laneOf(a chain.Address) chain.Sequence { return chain.Sequence{Chain: testChain, Sender: a} }

// demanded are the open intents of tests: of ann and, fewer, of bea.
func demanded() []intent.Demand {
	return []intent.Demand{
		{From: intent.From{Signer: &annie}, Client: "ann", Assigned: 7, Key: &chain.NonceKey{}},
		{From: intent.From{Signer: &annie}, Client: "ann", Waiting: 3},
		{From: intent.From{Pool: "hot"}, Client: "bea", Waiting: 2},
		{From: intent.From{Pool: "cold"}, Client: "ann", Waiting: 90},
		{From: intent.From{Pool: "hot"}, Client: "bea", Waiting: 50, Key: &chain.NonceKey{31: 9}},
	}
}

// fleetOf is a fleet on a log and read models.
func fleetOf(log port.Store, view *sql.DB) *Fleet {
	g := guard.New(guard.Config{
		Safeguards: guard.Safeguards{Store: log, Codec: safeguard.Codec(), Random: rand.Reader}, Signers: guard.Signers{Store: log, Codec: signer.Codec(), Random: rand.Reader},
		Budgets: guard.Budgets{Store: log, Codec: budget.Codec(), Random: rand.Reader}, Settings: guard.DefaultSettings(), Now: func() time.Time { return epoch }, Log: slog.New(slog.DiscardHandler),
	})
	return &Fleet{
		Chains: []chain.ID{testChain}, Signers: []chain.Address{annie, bob}, Pools: map[string][]chain.Address{"hot": {annie}, "cold": {bob}},
		States: g, Lanes: lanes.Query{DB: view},
		Demand: func(on chain.ID) ([]intent.Demand, time.Time) { return demanded(), epoch },
		Held:   func(chain.Sequence) (HeldLane, bool) { return HeldLane{}, false },
		Next: func(context.Context, chain.Sequence) (lane.Witness, error) {
			return lane.Witness{Nonce: 4, Block: chain.Block{Number: 9}}, nil
		},
		Diagnose: func(_ context.Context, id chain.Sequence) (any, error) {
			return map[string]any{
				"chain": id.Chain, "signer": id.Sender, "nonceKey": id.Key, "well": true, "inFlight": 2, "room": 9, "findings": []any{},
			}, nil
		},
	}
}

// openLane opens a lane with two nonces in flight, one of them signed.
func (s *stack) openLane(id chain.Sequence) {
	s.t.Helper()
	h := handler.Handler[lane.State, lane.Command, lane.Event]{Store: s.config.Intake.Intents.Store, Codec: lane.Codec(), Random: rand.Reader}
	w := lane.Witness{Nonce: 4, Block: chain.Block{Number: 1, Hash: chain.Hash{1}}, Endpoints: []string{"a"}, Needed: 1, Asked: 1}
	signed := lane.Signed{Nonce: 4, Intent: chain.IntentID{1}, Hash: chain.Hash{4}, Fee: chain.LegacyFee(chain.PriceOf(1))}
	for _, c := range []lane.Command{
		lane.Open{Holder: "host-1", Token: 1, At: epoch}, lane.Advance{Token: 1, Witness: w, At: epoch},
		lane.Reserve{Token: 1, Intents: []chain.IntentID{{1}, {2}}, Budget: 9, At: epoch}, lane.Attempt{Token: 1, Signed: []lane.Signed{signed}, At: epoch.Add(time.Second)},
	} {
		_, err := h.Do(s.t.Context(), lane.Stream(id), c, eventlog.Meta{Actor: "test"})
		check(s.t, err)
	}
}

// A client sees the signers and pools that its key may use, and counts of its own intents. An auditor
// sees the signers' state, and everybody's counts.
func TestSignersAreSeen(t *testing.T) {
	h := newHooked(t)
	g := h.config.Fleet.States.(*guard.Guard)
	check(t, g.Register(t.Context(), testChain, annie, []string{"hot"}))
	check(t, g.Seen(t.Context(), testChain, annie, chain.NewAmount(70)))
	check(t, g.Failed(t.Context(), laneOf(annie), signer.NoSignature, "no such key"))
	h.openLane(laneOf(annie))
	h.project()
	ann, bea, auditor := h.token("ann", access.Read), h.create(access.Key{Name: "bea", Client: "bea", Scopes: []access.Scope{access.Read}, Signers: []chain.Address{annie}, Pools: []string{"hot"}}), h.token("auditor", access.Audit)
	see := func(token string) fleetShown {
		return into[fleetShown](t, h.do(http.MethodGet, "/v1/signers", "", "X-API-Key", token), http.StatusOK)
	}
	seen := func(a chain.Address, pool string, serves bool, waiting, assigned int) signerSeen {
		return signerSeen{a, []string{pool}, []onChain{{ChainID: testChain, Serves: serves, Waiting: waiting, Assigned: assigned}}}
	}
	at := epoch.Unix()
	want := fleetShown{
		Signers: []signerSeen{seen(annie, "hot", true, 3, 7), seen(bob, "cold", false, 0, 0)},
		Pools:   []poolSeen{{"cold", []chain.Address{bob}, 90}, {"hot", []chain.Address{annie}, 0}}, CountedAt: at,
	}
	if d := cmp.Diff(want, see(ann)); d != "" {
		t.Errorf("ann sees (-want +got):\n%s", d)
	}
	mine := fleetShown{Signers: []signerSeen{seen(annie, "hot", true, 0, 0)}, Pools: []poolSeen{{"hot", []chain.Address{annie}, 52}}, CountedAt: at}
	if d := cmp.Diff(mine, see(bea)); d != "" {
		t.Errorf("bea sees (-want +got):\n%s", d)
	}
	want.Pools[1].Waiting = 52
	balance, next, inFlight := chain.NewAmount(70), uint64(6), 2
	want.Signers[0].Chains[0].Audited = &Audited{
		Status: signer.StatusServing, Actor: "configuration", Since: at, Balance: &balance, BalanceAt: at, Failures: 1,
		LastError: &lastError{signer.NoSignature, "no such key", at}, NextNonce: &next, InFlight: &inFlight, SignedAt: at + 1,
	}
	want.Signers[1].Chains[0].Audited = &Audited{Status: "unregistered"}
	if d := cmp.Diff(want, see(auditor)); d != "" {
		t.Errorf("the auditor sees (-want +got):\n%s", d)
	}
	one := func(a chain.Address, token string) response {
		return h.do(http.MethodGet, "/v1/signers/"+a.String(), "", "X-API-Key", token)
	}
	if d := cmp.Diff(mine.Signers[0], into[signerSeen](t, one(annie, bea), http.StatusOK)); d != "" {
		t.Error(d)
	}
	h.problem(one(bob, bea), http.StatusNotFound, "no-such-signer")
	h.problem(one(chain.Address{3}, ann), http.StatusNotFound, "no-such-signer")
	h.problem(h.do(http.MethodGet, "/v1/signers/0x1", "", "X-API-Key", ann), http.StatusBadRequest, "invalid-address")
	if got := into[fleetShown](t, h.do(http.MethodGet, "/v1/signers?chainId=1", "", "X-API-Key", ann), http.StatusOK); len(got.Signers[0].Chains) > 0 {
		t.Errorf("on another chain: %+v", got)
	}
}

// Lanes are for auditors: with their holder, nonces, backlog, balance and, at the replica that works on
// them, the last error. One lane is compared with the chain, and diagnosed.
func TestLanesAreSeen(t *testing.T) {
	asked := errors.New("no quorum")
	h := newHooked(t, func(c *Config) {
		c.API.Rates.Key = rest.Rate{PerSecond: 1, Burst: 200}
		c.Fleet.Held = func(id chain.Sequence) (HeldLane, bool) {
			return HeldLane{Budget: 9, Drift: 2, TurnAt: epoch.Add(time.Minute), Trouble: "a node fails", TroubleAt: epoch}, id.Sender == bob
		}
		c.Fleet.Next = func(_ context.Context, id chain.Sequence) (lane.Witness, error) {
			if id.Sender == bob {
				return lane.Witness{}, asked
			}
			return lane.Witness{Nonce: 7, Block: chain.Block{Number: 9}}, nil
		}
	})
	g := h.config.Fleet.States.(*guard.Guard)
	check(t, g.Register(t.Context(), testChain, annie, []string{"hot"}))
	check(t, g.Seen(t.Context(), testChain, annie, chain.NewAmount(70)))
	h.openLane(laneOf(annie))
	h.openLane(laneOf(bob))
	h.project()
	ann, auditor := h.token("ann", access.Read, access.Submit, access.Cancel), h.token("auditor", access.Audit)
	for _, target := range []string{"/v1/lanes", annieLane, annieLane + "/diagnosis"} {
		h.problem(h.do(http.MethodGet, target, "", "X-API-Key", ann), http.StatusForbidden, "forbidden")
	}
	get := func(target string) response { return h.do(http.MethodGet, target, "", "X-API-Key", auditor) }
	list := into[lanePage](t, get("/v1/lanes"), http.StatusOK)
	at, next, balance := epoch.Unix(), uint64(6), chain.NewAmount(70)
	want := laneShown{
		ChainID: testChain, Signer: annie, Holder: "host-1", Token: 1, OpenedAt: at, NextNonce: &next, InFlight: 2, Open: 2,
		Front: &front{Nonce: 4, Intent: &chain.IntentID{1}, Since: at + 1, Attempts: 1, TxHash: chain.Hash{4}}, Waiting: 5, Assigned: 7,
		SignerStatus: signer.StatusServing, Balance: &balance, BalanceAt: at, SignedAt: at + 1,
	}
	if len(list.Lanes) != 2 || list.Lanes[1].SeenAt == 0 {
		t.Fatalf("%+v", list)
	}
	want.SeenAt = list.Lanes[1].SeenAt // by the store's clock
	if d := cmp.Diff(want, list.Lanes[1]); d != "" {
		t.Errorf("annie's lane (-want +got):\n%s", d)
	}
	two := int64(2)
	if got := list.Lanes[0]; got.Signer != bob || got.SignerStatus != "unregistered" || cmp.Diff(&two, got.Drift) != "" ||
		cmp.Diff(&heldHere{Budget: 9, TurnAt: at + 60, LastError: &lastError{Detail: "a node fails", At: at}}, got.Here) != "" {
		t.Errorf("bob's lane: %+v", got)
	}

	costs := func(target string, units int) response {
		t.Helper()
		before := h.do(http.MethodGet, "/v1/lanes?limit=1", "", "X-API-Key", auditor).header.Get("RateLimit")
		res := get(target)
		var was, is, x int
		_, err := fmt.Sscanf(strings.TrimPrefix(before, `"key";r=`), "%d;t=%d", &was, &x)
		check(t, err)
		_, err = fmt.Sscanf(strings.TrimPrefix(res.header.Get("RateLimit"), `"key";r=`), "%d;t=%d", &is, &x)
		check(t, err)
		if was-is != units {
			t.Errorf("%s costs %d, want %d", target, was-is, units)
		}
		return res
	}
	one := into[laneShown](t, costs(annieLane, askUnits), http.StatusOK)
	three := int64(3) // 4 and 5 are recorded as in flight, and 6 is unknown here
	if one.ChainNonce == nil || *one.ChainNonce != 7 || one.ChainBlock != 9 || cmp.Diff(&three, one.Drift) != "" {
		t.Errorf("with the chain: %+v", one)
	}
	if res := into[laneShown](t, get(fmt.Sprintf("/v1/lanes/%d/%s/0x0", testChain, bob)), http.StatusOK); res.ChainError == "" || strings.Contains(res.ChainError, asked.Error()) {
		t.Errorf("without the chain: %+v", res)
	}
	if res := costs(annieLane+"/diagnosis", diagnoseUnits); res.status != http.StatusOK || !strings.Contains(string(res.body), annie.String()) {
		t.Errorf("%d %s", res.status, res.body)
	}
	h.problem(get(strings.Replace(annieLane, "0x0", "0x7", 1)), http.StatusNotFound, "unknown-lane")
	h.problem(get(strings.Replace(annieLane, "0x0", "0x7", 1)+"/diagnosis"), http.StatusNotFound, "unknown-lane")
	h.problem(get("/v1/lanes/x/y/z"), http.StatusBadRequest, "invalid-request")
	for query, want := range map[string][]chain.Address{
		"?busy=true": {bob, annie}, "?busy=false": nil, "?signer=" + annie.String(): {annie}, "?holder=host-1&limit=1": {bob}, "?holder=x": nil, "?chainId=1": nil,
	} {
		var got []chain.Address
		for _, l := range into[lanePage](t, get("/v1/lanes"+query), http.StatusOK).Lanes {
			got = append(got, l.Signer)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", query, got)
		}
	}
	for _, query := range []string{"busy=x", "holder=", "signer=1", "chainId=x"} {
		h.problem(get("/v1/lanes?"+query), http.StatusBadRequest, "invalid-filter")
	}
	h.config.Fleet.Diagnose = func(context.Context, chain.Sequence) (any, error) { return nil, errors.New("hush") }
	if res := get(annieLane + "/diagnosis"); res.status != http.StatusServiceUnavailable || strings.Contains(string(res.body), "hush") {
		t.Errorf("%d %s", res.status, res.body)
	}
}
