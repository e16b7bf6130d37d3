package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// lossy drops some requests, and some replies after the service has sent them.
type lossy struct {
	mu   sync.Mutex
	dice *rand.Rand
	lost int
}

func (l *lossy) loses() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dice.IntN(4) > 0 {
		return false
	}
	l.lost++
	return true
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.loses() {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errors.New("the request was lost")
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.loses() {
		_ = res.Body.Close()
		return nil, errors.New("the reply was lost")
	}
	return res, err
}

// The Go client runs over lossy connections, while the service is killed and restarted. Every
// payment is made once, and a follower receives each event once.
func TestGoClient(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		s.Listen = freeAddress(t) // the same after each restart
		check(t, s.Start(w.ctx))
		line := &lossy{dice: rand.New(rand.NewPCG(9, 9))}
		client := &watchtower.Client{URL: s.URL, HTTP: &http.Client{Transport: line}, Tries: 12}
		payments, to := rig.Payments(4100, 30)

		following, stop := context.WithCancel(w.ctx)
		defer stop()
		followed := make(chan map[string]int, 1)
		go func() { followed <- follow(following, t, client, len(payments)) }()

		half := len(payments) / 2
		submitAll(w.ctx, t, client, payments[:half])
		s.Kill()
		restarted := make(chan error, 1)
		go func() { restarted <- s.Start(w.ctx) }()
		submitAll(w.ctx, t, client, payments[half:]) // begins before the service is back
		check(t, <-restarted)

		for _, p := range payments {
			tx, err := client.Wait(w.ctx, p.Hash.String(), watchtower.Final)
			check(t, err)
			if tx.Status != watchtower.StatusExecuted || !tx.Finalized || tx.Receipt == nil {
				t.Errorf("%+v", tx)
			}
		}
		w.paidOnce(t, to, len(payments))
		for name, n := range <-followed {
			if n != 1 {
				t.Errorf("%s came %d times", name, n)
			}
		}
		if line.lost == 0 {
			t.Error("nothing was lost on the way")
		}
		w.asked(t, client, payments)
		check(t, s.Stop(w.ctx))
	})
}

// freeAddress returns an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close() //nolint:errcheck // it only showed a free address
	return l.Addr().String()
}

func submitAll(ctx context.Context, t *testing.T, client *watchtower.Client, payments []rig.Payment) {
	t.Helper()
	for i := 0; i < len(payments); i += 10 {
		var raws [][]byte
		for _, p := range payments[i:min(i+10, len(payments))] {
			raws = append(raws, p.Raw)
		}
		results, err := client.Submit(ctx, uint64(rig.TempoChain), raws...)
		check(t, err)
		for j, r := range results {
			if !r.OK || r.TxHash != payments[i+j].Hash.String() {
				t.Errorf("%+v", r)
			}
		}
	}
}

// follow counts events until the last event of every payment has arrived.
func follow(ctx context.Context, t *testing.T, client *watchtower.Client, payments int) map[string]int {
	seen, ended := map[string]int{}, 0
	from := uint64(0)
	for e, err := range client.Events(ctx, watchtower.EventFilter{After: &from, Stream: "tx-", ChainID: uint64(rig.TempoChain)}) {
		if err != nil {
			t.Errorf("events: %v", err)
			break
		}
		seen[e.ID+" "+e.Name]++
		if e.Name == "tx.finalized.v1" {
			if ended++; ended == payments {
				break
			}
		}
	}
	return seen
}

// asked checks the client's answers against the known payments.
func (w *world) asked(t *testing.T, client *watchtower.Client, payments []rig.Payment) {
	t.Helper()
	listed := map[string]bool{}
	for tx, err := range client.List(w.ctx, watchtower.Filters{ChainID: uint64(rig.TempoChain), Statuses: []watchtower.Status{watchtower.StatusExecuted}}) {
		check(t, err)
		listed[tx.TxHash] = true
	}
	for _, p := range payments {
		if !listed[p.Hash.String()] {
			t.Errorf("%s is not listed", p.Hash)
		}
	}
	first := payments[0].Hash.String()
	var names []string
	for e, err := range client.Trail(w.ctx, first) {
		check(t, err)
		names = append(names, e.Name)
	}
	if len(names) < 3 || names[0] != "tx.accepted.v1" || names[len(names)-1] != "tx.finalized.v1" {
		t.Errorf("trail: %v", names)
	}
	tx, err := client.Get(w.ctx, first)
	check(t, err)
	if tx.Sender == "" || tx.Version != uint64(len(names)) {
		t.Errorf("%+v", tx)
	}
	looked, err := client.Validate(w.ctx, uint64(rig.TempoChain), payments[0].Raw, []byte("nonsense"))
	check(t, err)
	if !looked[0].AlreadyKnown || looked[1].OK || looked[1].Problem.Code != "invalid-transaction" {
		t.Errorf("%+v", looked)
	}
	health, err := client.Health(w.ctx)
	check(t, err)
	if health.Status != "ok" || len(health.Endpoints) == 0 {
		t.Errorf("%+v", health)
	}
	var problem *watchtower.Problem
	if _, err := client.Get(w.ctx, "0x"+first[4:]+"00"); !errors.As(err, &problem) || problem.Code != "unknown-transaction" || problem.RequestID == "" {
		t.Errorf("an unknown hash: %v", err)
	}
	// A wait that times out returns the state so far.
	over, cancel := context.WithDeadline(w.ctx, time.Now())
	defer cancel()
	if _, err := client.Wait(over, first, watchtower.Final); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// An owner finds, reads and cancels a group by signature.
func TestGoClientGroups(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		client := &watchtower.Client{URL: s.URL}
		owner, id := wallet.Dev(4), uint64(rig.TempoChain)
		key, payments := subscription(owner, 9, 1, 3) // nonce 0 is missing: no payment can be mined
		results, err := client.Submit(w.ctx, id, raws(payments)...)
		check(t, err)
		sender, groupID := results[0].Sender, results[0].GroupID

		plan := w.members(t, client, sender, groupID, len(payments))
		if plan.NonceKey != key.String() || plan.CancelPlan.AlreadyInvalidated == nil || *plan.CancelPlan.AlreadyInvalidated {
			t.Errorf("%+v", plan)
		}
		var listed []watchtower.Group
		for g, err := range client.Groups(w.ctx, sender, watchtower.GroupFilters{ChainID: id}) {
			check(t, err)
			listed = append(listed, g)
		}
		if len(listed) != 1 || listed[0].GroupID != groupID {
			t.Errorf("%+v", listed)
		}

		health, err := client.Health(w.ctx)
		check(t, err)
		cancel := watchtower.Cancel{ChainID: id, Deployment: health.Deployment, Sender: sender, GroupID: groupID, Expires: time.Now().Add(time.Minute)}
		var problem *watchtower.Problem
		if _, err := client.CancelGroup(w.ctx, cancel, typedBy(wallet.Dev(5))); !errors.As(err, &problem) || problem.Temporary() {
			t.Errorf("a stranger's signature: %v", err)
		}
		byID := func(group []byte) ([]byte, error) { return owner.Sign(chain.Keccak(group)), nil }
		for range 2 { // a repetition, and the other form, change nothing
			canceled, err := client.CancelGroup(w.ctx, cancel, typedBy(owner))
			check(t, err)
			again, err := client.CancelGroupID(w.ctx, id, sender, groupID, byID)
			check(t, err)
			if canceled.Canceled != len(payments) || again.Canceled != len(payments) {
				t.Errorf("%+v, then %+v", canceled, again)
			}
		}
		tx, err := client.Wait(w.ctx, results[0].TxHash, watchtower.Executed)
		check(t, err)
		if tx.Status != watchtower.Canceled {
			t.Errorf("%+v", tx)
		}
		check(t, s.Stop(w.ctx))
	})
}

// typedBy signs the typed data of a cancel, computing the digest from its content.
func typedBy(owner wallet.Key) func(data []byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		var typed struct {
			Domain  struct{ ChainID chain.ID }
			Message struct {
				Deployment string
				Sender     chain.Address
				GroupID    chain.GroupID
				Expires    uint64
			}
		}
		if err := json.Unmarshal(data, &typed); err != nil {
			return nil, err
		}
		m := typed.Message
		id := group.ID{Chain: typed.Domain.ChainID, Sender: m.Sender, Group: m.GroupID}
		return owner.Sign(group.Wish{ID: id, Deployment: m.Deployment, Expires: m.Expires}.Digest()), nil
	}
}

// members reads a group until all its members have joined.
func (w *world) members(t *testing.T, client *watchtower.Client, sender, groupID string, n int) watchtower.GroupPlan {
	t.Helper()
	for {
		plan, err := client.Group(w.ctx, uint64(rig.TempoChain), sender, groupID)
		if err == nil && len(plan.Members) == n {
			return plan
		}
		select {
		case <-w.ctx.Done():
			t.Fatalf("%+v, %v", plan, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
