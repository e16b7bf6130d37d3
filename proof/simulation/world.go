package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/proof/simulation/memory"
)

// chainID is the id of the world's chain.
const chainID chain.ID = 42431

// world is all external dependencies of the service.
type world struct {
	plan   Plan
	agenda *agenda
	log    *slog.Logger
	config config.Config
	master payload.Master
	signer audit.Signer // signs seals of the log

	settings    settings.Settings // of the relay half
	signers     []account
	signersDown time.Duration                  // end of the signers' outage
	market      uint64                         // gas price while fees do not rise, in gwei
	rivals      map[chain.Sequence]chain.Block // block of the last use of a signer's key by another sender
	lanes       *laneJudge                     // nil without a relay half
	wishes      *wishes                        // nil without a relay half
	hooks       *hooks                         // nil without webhooks

	store     *memory.Store
	cluster   *cluster // nil unless it has the log, which store then mirrors
	views     *views
	storeSkew time.Duration // skew of the store's clock
	storeDown time.Duration // end of the store's outage

	chain *chaintest.Chain
	nodes map[string]*node
	hosts []string // in order

	seats    []*replica
	lives    int
	running  sync.WaitGroup
	crashes  *crashes
	closing  bool
	resting  bool // no replica may start
	redisEra int

	admitted uint64
	waiting  []*call           // calls that wait for an event
	headNow  atomic.Uint64     // position of the last event; replicas read it if a cluster has the log
	headSeen eventlog.Position // as seen by waiting subscribers
	viewFate fate
	healed   bool

	load    *load
	tenants *tenants
	hostile *neighbor // nil without one
	life    *life
	judge   *judge
	faults  map[string]int
	some    map[string]int // events by number of occurrences
	notes   []string
	owners  map[string]*replica // of leases
}

// node is a node of the chain, with its outage.
type node struct {
	host  string
	node  *chaintest.Node
	down  time.Duration
	fault chaintest.Faults
}

// note writes a message for people who examine a failed world.
func (w *world) note(format string, args ...any) {
	const most = 1000
	if len(w.notes) < most {
		w.notes = append(w.notes, w.agenda.now().String()+" "+fmt.Sprintf(format, args...))
	}
}

// newWorld creates a world in which nothing runs yet.
func newWorld(p Plan, log *slog.Logger) (*world, error) {
	w := &world{
		plan: p, agenda: newAgenda(p.Seed), log: log, crashes: newCrashes(p), nodes: map[string]*node{},
		rivals: map[chain.Sequence]chain.Block{}, faults: map[string]int{}, some: map[string]int{}, owners: map[string]*replica{},
	}
	var err error
	if w.master, err = payload.NewMaster([]byte("a key that all replicas have, 32 ")[:payload.KeyBytes]); err != nil {
		return nil, err
	}
	if w.signer, err = signerOf(p.Seed); err != nil {
		return nil, err
	}
	w.store = memory.Open(memory.Options{Now: w.storeTime})
	if w.views, err = openViews(context.Background()); err != nil {
		return nil, err
	}
	w.judge, w.cluster = newJudge(w), newCluster(w)
	w.tenants, w.life = newTenants(w), newLife(w)
	w.chain = chaintest.New(chaintest.Options{
		Chain: chainID, Decode: w.judge.decode, Now: time.Now, Received: w.judge.received,
		Rand:  rand.New(rand.NewPCG(p.Seed, 0xc4a1)),
		Rules: chaintest.Rules{Finality: p.Finality, Keychain: true},
	})
	for i := range p.Nodes {
		n := &node{host: host(i), node: w.chain.Node(host(i))}
		w.nodes[n.host], w.hosts = n, append(w.hosts, n.host)
	}
	w.seats = make([]*replica, p.Replicas)
	w.load = newLoad(w)
	if err := w.tenants.createKeys(); err != nil {
		return nil, err
	}
	if w.relayed() {
		w.signers = w.accounts()
		w.lanes, w.wishes = newLaneJudge(w), newWishes(w)
	}
	if w.hooked() {
		if w.hooks, err = newHooks(w); err != nil {
			return nil, err
		}
		w.log = w.hooks.secrets.logged(log)
	}
	if err = w.configure(); err != nil {
		return w, err
	}
	w.hostile = newNeighbor(w)
	return w, nil
}

// requestsKept is the time for which the service remembers requests.
const requestsKept = time.Hour

// configure builds the service's configuration, read as the program does.
func (w *world) configure() (err error) {
	p := w.plan
	urls := make([]string, len(w.hosts))
	for i, host := range w.hosts {
		urls[i] = "http://" + host
	}
	set := map[string]any{
		"CHAINS": fmt.Sprintf("%s=%s", chainID, strings.Join(urls, ",")), "STORE": "embedded::memory:",
		"OWNER_LEASE_TTL": p.OwnerTTL, "OWNER_LEASE_RENEW": p.OwnerTTL / 3,
		"SCHEDULER_LEASE_TTL": p.WorkLease, "SCHEDULER_POLL_INTERVAL": p.Poll, "WATCHER_POLL_INTERVAL": p.Poll,
		"WATCHER_USE_WEBSOCKET": false, "RETENTION_BYTES": p.Retention, "IDEMPOTENCY_KEEP": requestsKept,
		"SCHEDULER_REBROADCAST_MIN": 5 * time.Second, "SCHEDULER_REBROADCAST_MAX": 30 * time.Second,
		"SCHEDULER_RETRY_MIN": time.Second, "SCHEDULER_RETRY_MAX": 5 * time.Second, "AUDIT_SEAL_EVENTS": sealEvents,
	}
	maps.Copy(set, p.twinSettings())
	if p.GroupAll {
		set["GROUPING"] = "all"
	}
	if p.Confirm {
		set["CONFIRMATIONS"] = fmt.Sprintf("%s=%d", chainID, p.Finality+1)
	}
	if w.relayed() {
		maps.Copy(set, w.relaySettings())
		maps.Copy(set, w.hooks.settings())
		w.settings, err = w.resolve(set)
		w.settings.Webhooks.Rules.Lookup = w.hooks.lookup
		w.config = w.settings.Delivery
		return err
	}
	w.config, _, err = config.Resolve(nil, environ(set), nil)
	return err
}

// environ formats settings as environment variables.
func environ(set map[string]any) (all []string) {
	for name, value := range set {
		all = append(all, fmt.Sprintf("WATCHTOWER_%s=%v", name, value))
	}
	slices.Sort(all)
	return all
}

// storeTime is the store's clock.
func (w *world) storeTime() time.Time { return time.Now().Add(w.storeSkew) }

// head is the position of the last event.
func (w *world) head() eventlog.Position { return eventlog.Position(w.headNow.Load()) }

// appended records events appended to the log.
func (w *world) appended(a eventlog.Appended, n int) {
	at := w.head()
	w.headNow.Store(uint64(a.Position))
	for at < a.Position {
		b, _, err := w.store.Page(context.Background(), at, eventlog.Filter{}, n)
		if err != nil {
			panic(err) // it was appended just now
		}
		for _, e := range b.Events {
			w.agenda.trace.add(string(e.Stream), e.Name, string(e.Data), e.ID.String())
			w.judge.see(e)
		}
		at = b.Next
	}
}

// leased records the holder of a lease.
func (w *world) leased(r *replica, name string) {
	if before := w.owners[name]; before != nil && before != r && !before.dead.Load() && before.frozen.Load() {
		w.some[takenOver]++
	}
	w.owners[name] = r
}

// settle admits the newly parked calls.
func (w *world) settle(arrived []*call) {
	for _, r := range w.seats {
		if r != nil && r.dead.Load() && !r.buried {
			w.some["crash at "+r.crash]++
			w.kill(r, "replica: crash at a point")
		}
	}
	for _, c := range arrived {
		w.admit(c)
	}
	if w.head() != w.headSeen || w.cluster != nil {
		w.headSeen = w.head()
		waiting := w.waiting
		w.waiting = nil
		for _, c := range waiting {
			if !c.left.Load() {
				w.admit(c)
			}
		}
	}
	w.collect()
}

// collect frees memory at a moment when no goroutine is delayed by it.
func (w *world) collect() {
	const every = 20_000 // in steps
	if w.agenda.steps%every == 0 {
		w.agenda.steps++
		runtime.GC()
	}
}

// run lets the world go on for a while, unless a promise was broken.
func (w *world) run(d time.Duration) {
	w.agenda.run(w.agenda.now()+d, w.settle, func() bool { return len(w.judge.violations) > 0 })
}

// runUntil lets the world go on until so returns true, for a while at most.
func (w *world) runUntil(most time.Duration, so func() bool) bool {
	done := false
	for began := w.agenda.now(); !done && w.agenda.now()-began < most && len(w.judge.violations) == 0; {
		w.run(time.Second)
		done = so()
	}
	return done
}

// close stops all replicas gracefully, and waits for them.
func (w *world) close() error {
	w.closing, w.healed = true, true
	for _, r := range w.seats {
		if r != nil && !r.ended {
			r.stop()
		}
	}
	ended := func() bool {
		return !slices.ContainsFunc(w.seats, func(r *replica) bool { return r != nil && !r.ended })
	}
	for range 120 {
		w.agenda.run(w.agenda.now()+time.Second, w.settle, func() bool { return false })
		if ended() {
			break
		}
	}
	for _, r := range w.seats {
		w.kill(r, "end")
	}
	delete(w.faults, "end")
	w.agenda.run(w.agenda.now()+time.Minute, w.settle, func() bool { return false })
	w.running.Wait()
	w.chain.Close()
	w.store.Close() //nolint:errcheck // never fails
	return w.views.close()
}

// decodeOnce is the service's decoder with a cache, for nodes that see the same bytes
// repeatedly.
func decodeOnce() func(raw []byte) (chain.Signed, error) {
	type read struct {
		signed chain.Signed
		err    error
	}
	known := map[string]read{}
	return func(raw []byte) (chain.Signed, error) {
		if r, ok := known[string(raw)]; ok {
			return r.signed, r.err
		}
		var r read
		r.signed, r.err = app.Decode(raw)
		known[string(raw)] = r
		return r.signed, r.err
	}
}

// loseViews empties the read models.
func (w *world) loseViews() {
	fresh, err := openViews(context.Background())
	if err == nil {
		err = w.views.close()
	}
	if err != nil {
		panic(err) // it is memory
	}
	w.views = fresh
}
