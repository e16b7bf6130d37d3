package app_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// fates are the Redis faults under which the same work is done.
var fates = map[string]func(t *testing.T, ctx context.Context, s *server.Redis){
	"absent": nil,
	"on":     func(*testing.T, context.Context, *server.Redis) {},
	"flushed": func(t *testing.T, ctx context.Context, s *server.Redis) {
		c := admin(t, s)
		every(ctx, 300*time.Millisecond, func(int) { c.FlushAll(ctx) })
	},
	"poisoned": func(t *testing.T, ctx context.Context, s *server.Redis) {
		ready, retry := fmt.Sprintf("watchtower:ready:%s", rig.TempoChain), fmt.Sprintf("watchtower:retry:%s", rig.TempoChain)
		c := admin(t, s)
		every(ctx, 100*time.Millisecond, func(n int) {
			switch n % 4 {
			case 0:
				c.Set(ctx, ready, "no set", 0)
			case 1:
				garbage := []goredis.Z{{Score: math.Inf(-1), Member: ""}, {Score: math.Inf(1), Member: "\x00"}}
				for n := range 5000 {
					garbage = append(garbage, goredis.Z{Score: float64(n), Member: fmt.Sprint("garbage", n)})
				}
				c.ZAdd(ctx, retry, garbage...)
			case 2:
				c.ConfigSet(ctx, "maxmemory", "1mb")
			case 3:
				c.ConfigSet(ctx, "maxmemory", "0")
			}
		})
	},
	"killed": func(t *testing.T, ctx context.Context, s *server.Redis) {
		every(ctx, 1500*time.Millisecond, func(n int) {
			err := s.Kill()
			if n%2 == 1 {
				err = s.Start(context.WithoutCancel(ctx))
			}
			if err != nil {
				t.Log(err) // its port may be taken meanwhile: it stays away
			}
		})
	},
}

// every calls f once per pause until ctx ends.
func every(ctx context.Context, pause time.Duration, f func(n int)) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f(n)
		}
	}
}

func admin(t *testing.T, s *server.Redis) *goredis.Client {
	t.Helper()
	o, err := goredis.ParseURL(s.URL())
	must(t, err)
	c := goredis.NewClient(o)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The same work, with delays, refusals and an outage of the nodes, ends in the same state under
// every fault of Redis, on either engine.
func TestRedisChangesNoOutcome(t *testing.T) {
	program := testenv.Need(t, testenv.RedisBinVar)
	timeless := map[int]item{} // signed once for all runs
	for n := range rounds * int(kinds) {
		if k := kind(n % int(kinds)); k != delayed && k != expiring {
			timeless[n] = sign(n, chain.Window{})
		}
	}
	for engine, replicas := range map[string]int{"embedded": 1, "postgres": 2} {
		for name, fate := range fates {
			t.Run(engine+" "+name, func(t *testing.T) {
				t.Parallel()
				flags := []string{"--store", "embedded:" + filepath.Join(t.TempDir(), "data")}
				if engine == "postgres" {
					flags = []string{"--store", testenv.Postgres(t), "--vault-key-file", filepath.Join(t.TempDir(), "vault.key")}
				}
				w := newWork(t)
				if fate != nil {
					s, err := server.NewRedis(program)
					must(t, err)
					t.Cleanup(func() { must(t, s.Remove()) })
					must(t, s.Start(t.Context()))
					flags = append(flags, "--redis", s.URL())
					ctx, stop := context.WithCancel(t.Context())
					var meddling sync.WaitGroup
					meddling.Go(func() { fate(t, ctx, s) })
					t.Cleanup(meddling.Wait)
					t.Cleanup(stop)
				}
				var urls []string
				for range replicas {
					urls = append(urls, serveUntilTheEnd(t, slices.Concat(flags, w.flags)...))
				}
				w.submit(urls, timeless)
				if diff := cmp.Diff(w.want, w.outcome(urls[0])); diff != "" {
					t.Error(diff)
				}
				w.tellLateness()
			})
		}
	}
}

// serveUntilTheEnd runs a replica until the test ends, and returns its URL.
func serveUntilTheEnd(t *testing.T, args ...string) string {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.Flags(flags)
	must(t, flags.Parse(append([]string{"--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"}, args...)))
	c, _, err := config.Resolve(flags, nil, nil)
	must(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- app.Serve(ctx, c, app.Options{
			Log: slog.New(slog.DiscardHandler), Listening: func(public, _ net.Addr) { listening <- public },
		})
	}()
	t.Cleanup(func() { stop(); must(t, <-ended) })
	select {
	case at := <-listening:
		return "http://" + at.String()
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return ""
	}
}

// kind is the kind of work that one transaction makes.
type kind int

const (
	plain    kind = iota
	delayed       // validAfter lies ahead
	retried       // refused twice
	expiring      // refused for ever
	stale         // another transaction has its nonce
	reverted
	followed // its successor is submitted with it
	follower
	kinds
)

// rounds is the number of transactions of each kind. The race detector makes SQLite, translated
// to Go, ten times slower, and the chain goes on while a slow machine is behind with the work.
const rounds = 24

// work is a chain, its nodes, and transactions for them.
type work struct {
	t     *testing.T
	chain *chaintest.Chain
	nodes []*chaintest.Node
	flags []string // the first two name the chain

	payments []rig.Payment
	kind     map[chain.Hash]kind
	due      map[chain.Hash]time.Time
	want     map[string]int

	mu       sync.Mutex
	refusals map[chain.Hash]int
}

func newWork(t *testing.T) *work {
	w := &work{t: t, kind: map[chain.Hash]kind{}, due: map[chain.Hash]time.Time{}, refusals: map[chain.Hash]int{}}
	w.chain = chaintest.New(chaintest.Options{Chain: rig.TempoChain, Decode: app.Decode})
	t.Cleanup(w.chain.Close)
	chains := fmt.Sprintf("%s=", rig.TempoChain)
	for i, name := range []string{"a", "b"} {
		node := w.chain.Node(name)
		node.Set(chaintest.Faults{Refuse: w.refuse})
		served := httptest.NewServer(node)
		t.Cleanup(served.Close)
		w.nodes = append(w.nodes, node)
		if i > 0 {
			chains += ","
		}
		chains += served.URL
	}
	w.flags = []string{"--chains", chains, "--confirmations", fmt.Sprintf("%s=3", rig.TempoChain), "--broadcaster-fanout", "1"}
	ctx, stop := context.WithCancel(t.Context())
	var mining sync.WaitGroup
	mining.Go(func() { w.chain.Run(ctx, 500*time.Millisecond) })
	t.Cleanup(mining.Wait)
	t.Cleanup(stop)
	return w
}

// refuse returns the nodes' refusals beyond the chain's rules.
func (w *work) refuse(s chain.Signed) *chaintest.Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.refusals[s.Hash]++; w.kind[s.Hash] {
	case retried:
		if w.refusals[s.Hash] > 2 {
			return nil
		}
	case expiring:
	default:
		return nil
	}
	return &chaintest.Refusal{Code: -32000, Message: "txpool is full"}
}

// item is one transaction to be delivered, and its rival if another transaction is to take its
// nonce.
type item struct {
	rig.Payment
	kind  kind
	rival []byte
}

// sign signs the n-th item.
func sign(n int, window chain.Window) item {
	i := item{kind: kind(n % int(kinds))}
	nonce := uint64(0)
	if i.kind == follower { // of the item before it
		n, nonce = n-1, 1
	}
	key := chain.NonceKey{31: 1}
	binary.BigEndian.PutUint32(key[8:], uint32(n))
	t := wallet.Tempo{NonceKey: key, Nonce: nonce, Window: window, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{1}, 1)}}
	i.Payment = rig.Pay(wallet.Dev(n%wallet.Devs), t)
	if i.kind == stale {
		t.Calls = []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{2}, 2)}
		i.rival = rig.Pay(wallet.Dev(n%wallet.Devs), t).Raw
	}
	return i
}

// submit submits the work to the replicas in turn, with an outage of the nodes soon after.
func (w *work) submit(urls []string, timeless map[int]item) {
	w.t.Helper()
	now := uint64(time.Now().Unix())
	window := map[kind]chain.Window{delayed: {After: now + 3}, expiring: {Before: now + 12}}
	var rivals [][]byte
	for n := range rounds * int(kinds) {
		p, ok := timeless[n]
		if !ok {
			p = sign(n, window[kind(n%int(kinds))])
		}
		at := len(w.payments)
		if p.kind == expiring {
			at = 0 // or it could have expired before it is submitted
		}
		w.payments = slices.Insert(w.payments, at, p.Payment)
		w.mu.Lock()
		w.kind[p.Hash] = p.kind
		w.mu.Unlock()
		w.due[p.Hash] = time.Unix(int64(window[p.kind].After), 0)
		switch p.kind {
		case stale:
			rivals = append(rivals, p.rival)
		case reverted:
			w.chain.Revert(p.Hash, true)
		}
	}
	_, err := w.chain.Mine(rivals...)
	must(w.t, err)
	w.want = map[string]int{"executed, status 1": 5 * rounds, "executed, status 0": rounds, "expired": rounds, "stale_by_nonce": rounds}

	for i, batch := range slices.Collect(slices.Chunk(w.payments, rounds)) {
		raws := make([][]byte, len(batch))
		for n, p := range batch {
			raws[n] = p.Raw
		}
		results, err := rig.Submit(w.t.Context(), urls[i%len(urls)], rig.TempoChain, raws...)
		must(w.t, err)
		for n, r := range results {
			if !r.OK {
				w.t.Fatalf("%+v", r)
			}
			if accepted := time.Now(); w.due[batch[n].Hash].Before(accepted) {
				w.due[batch[n].Hash] = accepted
			}
		}
	}
	timer := time.NewTimer(time.Second)
	<-timer.C
	for _, node := range w.nodes {
		node.Set(chaintest.Faults{Refuse: w.refuse, Down: true})
	}
	timer.Reset(2 * time.Second)
	<-timer.C
	for _, node := range w.nodes {
		node.Set(chaintest.Faults{Refuse: w.refuse})
	}
}

// outcome waits until all transactions are final, and counts their final states.
func (w *work) outcome(url string) map[string]int {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	ends := map[string]int{}
	for _, p := range w.payments {
		got, err := rig.Await(ctx, url, p.Hash, func(t rig.Transaction) bool { return t.Finalized })
		if err != nil {
			life, _ := rig.Events(w.t.Context(), url, p.Hash)
			for _, e := range life {
				w.t.Logf("%s %s %s", e.At.Format(time.StampMilli), e.Name, e.Data)
			}
			w.t.Fatalf("of kind %d: %v; %v had ended before", w.kind[p.Hash], err, ends)
		}
		end := got.Status
		if got.Receipt != nil {
			end += fmt.Sprintf(", status %d", got.Receipt.Status)
		}
		ends[end]++
		want := map[kind]string{expiring: "expired", stale: "stale_by_nonce", reverted: "executed, status 0"}[w.kind[p.Hash]]
		if want == "" {
			want = "executed, status 1"
		}
		if end != want {
			w.t.Errorf("%s, of kind %d, ended %s", p.Hash, w.kind[p.Hash], end)
		}
	}
	for hash, times := range w.chain.Executed() {
		if times != 1 {
			w.t.Errorf("%s is executed %d times", hash, times)
		}
	}
	return ends
}

// tellLateness logs the delay from due time to first send, and how long the transactions took
// that were refused twice.
func (w *work) tellLateness() {
	first := map[chain.Hash]time.Time{}
	sent := map[chain.Hash][]time.Time{}
	for _, d := range w.chain.Received() {
		if _, ok := first[d.Hash]; !ok {
			first[d.Hash] = d.At
		}
		sent[d.Hash] = append(sent[d.Hash], d.At)
	}
	late := map[kind][]time.Duration{}
	for hash, k := range w.kind {
		if at, ok := first[hash]; ok && (k == plain || k == delayed) {
			late[k] = append(late[k], max(at.Sub(w.due[hash]), 0))
		}
		if k == retried && len(sent[hash]) > 2 {
			late[k] = append(late[k], sent[hash][2].Sub(sent[hash][0]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(late)) {
		slices.Sort(late[k])
		all := late[k]
		w.t.Logf("%s: median %s, nine tenths within %s, worst %s", []string{"at once", "delayed", "two retries"}[k],
			all[len(all)/2].Round(time.Millisecond), all[len(all)*9/10].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
	}
}
