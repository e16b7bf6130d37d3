package main_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// outpost is a replica in its own network namespace, with one cable each to the store, the nodes
// and the clients.
type outpost struct {
	*rig.Service
	store, nodes, clients *rig.Cable
}

// archipelago is a world of replicas in separate network namespaces. They share a Postgres
// server that sees a partition, too.
type archipelago struct {
	*world
	posts []outpost
}

func newArchipelago(t *testing.T, replicas int) *archipelago {
	t.Helper()
	testenv.Islands(t)
	a := &archipelago{}
	a.world = newWorld(t, func(*testing.T, string) []string { return nil }, "--block-time", "1")
	db, err := server.NewPostgres(a.ctx, testenv.Need(t, testenv.PostgresBinVar))
	check(t, err)
	t.Cleanup(func() { check(t, db.Remove()) })
	t.Cleanup(func() { a.judge(t) })
	islands := make([]*rig.Island, replicas)
	for i := range islands {
		islands[i], err = rig.NewIsland()
		check(t, err)
		t.Cleanup(func() { check(t, islands[i].Close()) })
		a.posts = append(a.posts, outpost{store: cable(t, islands[i]), nodes: cable(t, islands[i]), clients: cable(t, islands[i])})
		check(t, db.ListenOn(a.posts[i].store.Near))
	}
	check(t, db.Start(a.ctx))
	a.direct = db.URL()
	for i := range a.posts {
		a.settle(t, &a.posts[i], islands[i], db.URL())
	}
	return a
}

func cable(t *testing.T, island *rig.Island) *rig.Cable {
	t.Helper()
	c, err := island.Cable()
	check(t, err)
	return c
}

// settle prepares the replica of an island.
func (a *archipelago) settle(t *testing.T, post *outpost, island *rig.Island, database string) {
	t.Helper()
	store, err := url.Parse(database)
	check(t, err)
	store.Host = post.store.Near + ":" + store.Port()
	node, err := url.Parse(a.proxy.URL)
	check(t, err)
	wire, err := rig.NewWireAt(post.nodes.Near, node.Host)
	check(t, err)
	t.Cleanup(func() { check(t, wire.Close()) })
	a.world.store = []string{"--store", store.String(), "--vault-key-file", filepath.Join(a.dir, "vault.key"), "--open-access"}
	a.chains = "42431=http://" + wire.Addr
	post.Service = a.service(t)
	post.Wrap, post.Listen = island.Wrap(), post.clients.Far+":0"
}

// unhealthy waits until /health of a replica fails, and returns how long that took.
func (w *world) unhealthy(t *testing.T, url string) time.Duration {
	t.Helper()
	began := time.Now()
	for health(w.ctx, url) == http.StatusOK {
		if w.wait(20 * time.Millisecond); w.ctx.Err() != nil {
			t.Error("/health never tells")
			break
		}
	}
	return time.Since(began)
}

// A replica that owns all the work is partitioned from the store in its own network. The kernel
// drops its packets, or only the replies. It notices within five seconds, and the replica that
// still reaches the store does the work. After the partition nothing is lost or done twice.
func TestPartedFromTheStore(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]struct{ questions, answers bool }{
		"both ways":    {true, true},
		"answers only": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchipelago(t, 2)
			owner, other := a.posts[0], a.posts[1]
			a.startPair(t, owner.Service, other.Service)
			payments, to := rig.Payments(9801, 300)
			var parting sync.WaitGroup
			var mended time.Time
			parting.Go(func() {
				a.wait(time.Second) // let the load begin
				check(t, owner.store.Cut(cut.questions, cut.answers))
				noticed := a.unhealthy(t, owner.URL)
				rig.Within(t, noticed, 5*time.Second, "noticed")
				lone, loneTo := rig.Payments(9802, 1)
				began := time.Now()
				a.insist(t, lone, 1, other.URL)
				a.delivered(t, other.URL, lone, rig.Executed)
				t.Logf("noticed after %v; what the other replica was given then was executed %v later",
					noticed.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
				a.paidOnce(t, loneTo, 1)
				a.wait(blackout)
				check(t, owner.store.Mend())
				mended = time.Now()
			})
			failed, longest := a.insist(t, payments, 8, owner.URL, other.URL)
			parting.Wait()
			for health(a.ctx, owner.URL) != http.StatusOK && a.ctx.Err() == nil {
				a.wait(20 * time.Millisecond)
			}
			well := time.Since(mended)
			a.delivered(t, other.URL, payments, rig.Sealed)
			a.delivered(t, owner.URL, payments, rig.Sealed)
			a.paidOnce(t, to, len(payments))
			t.Logf("%d requests without an answer, the longest acceptance took %v; well %v after the cable was whole; latest first answer of a node %v",
				failed, longest.Round(time.Millisecond), well.Round(time.Millisecond), a.late(t, owner.URL, payments).Round(time.Millisecond))
			check(t, owner.Stop(a.ctx))
			check(t, other.Stop(a.ctx))
		})
	}
}

// A replica that owns all the work is partitioned from its nodes. It notices, and after the
// partition nothing is lost.
func TestPartedFromTheNodes(t *testing.T) {
	t.Parallel()
	a := newArchipelago(t, 2)
	owner, other := a.posts[0], a.posts[1]
	a.startPair(t, owner.Service, other.Service)
	payments, to := rig.Payments(9811, 200)
	var parting sync.WaitGroup
	var mended time.Time
	parting.Go(func() {
		a.wait(time.Second)
		check(t, owner.nodes.Cut(true, true))
		for name := range endpoints(a.ctx, t, owner.URL) {
			noticed := awaitEndpoint(a.ctx, t, owner.URL, name, func(e endpointHealth) bool { return !e.Healthy })
			t.Logf("noticed after %v", noticed.Round(time.Millisecond))
		}
		a.wait(blackout)
		check(t, owner.nodes.Mend())
		mended = time.Now()
	})
	failed, longest := a.insist(t, payments, 8, owner.URL, other.URL)
	parting.Wait()
	if failed > 0 {
		t.Errorf("%d requests failed: accepting needs no node", failed)
	}
	a.delivered(t, other.URL, payments, rig.Sealed)
	t.Logf("the longest acceptance took %v; all were sealed %v after the cable was whole; latest first answer of a node %v",
		longest.Round(time.Millisecond), time.Since(mended).Round(time.Millisecond), a.late(t, owner.URL, payments).Round(time.Millisecond))
	a.paidOnce(t, to, len(payments))
	check(t, owner.Stop(a.ctx))
	check(t, other.Stop(a.ctx))
}
