package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// free returns an address without a listener.
func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer func() { check(t, l.Close()) }()
	return l.Addr().String()
}

// forward publishes clients' events to a broker, in order and without gaps for each intent.
func TestForward(t *testing.T) {
	t.Parallel()
	cache := newRedis(t)
	w := newWorld(t, kinds()[0], inFiles)
	w.ask(t, w.pool("one"), w.pool("two"))
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	w.done(t, s)
	check(t, s.Stop(w.ctx))
	want := 0
	for _, r := range w.events(t) {
		if id, err := intent.ParseStream(r.Stream); err == nil {
			e, err := intent.Codec().Decode(r.Name, r.Data)
			check(t, err)
			if _, told := intent.Tell(id, e); told {
				want++
			}
		}
	}

	options, err := redis.ParseURL(cache.URL())
	check(t, err)
	client := redis.NewClient(options)
	defer client.Close() //nolint:errcheck // the test is over
	var stderr bytes.Buffer
	cmd, forwarder := w.forwarder(t, cache.URL(), &stderr)
	for n := int64(0); n < int64(want); {
		if n, err = client.XLen(w.ctx, "told").Result(); err != nil {
			t.Fatalf("%d of %d are published: %v: %s", n, want, err, &stderr)
		}
		if err := pause.For(w.ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("%d of %d are published: %v: %s", n, want, err, &stderr)
		}
	}
	w.becomes(t, "the forwarder tells how far it is", func() bool {
		told := w.figures(t, forwarder).values
		return told[`watchtower_feed_delivered_total{group="outward",topic="all"`] >= float64(want) && told[`watchtower_feed_active{group="outward",topic="all"`] == 1
	})
	check(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	entries, err := client.XRange(w.ctx, "told", "-", "+").Result()
	check(t, err)
	last := map[chain.IntentID]uint64{}
	for _, e := range entries {
		var n intent.Notice
		check(t, json.Unmarshal([]byte(fmt.Sprint(e.Values["payload"])), &n))
		if n.Sequence != last[n.Intent]+1 {
			t.Errorf("%s comes after %d", n.ID(), last[n.Intent])
		}
		last[n.Intent] = n.Sequence
	}
	if len(last) != 2 || len(entries) != want {
		t.Errorf("%d messages of %d intents, want %d", len(entries), len(last), want)
	}
}

// forwarder runs relayer forward to a stream of its own. The returned service has its metrics.
func (w *world) forwarder(t *testing.T, to string, stderr io.Writer) (*exec.Cmd, *rig.Service) {
	t.Helper()
	figuresAt := free(t)
	cmd := exec.CommandContext(w.ctx, program, append([]string{"forward", "--as", "told", "--metrics", figuresAt}, w.flags...)...)
	cmd.Env, cmd.Stderr = append(cmd.Environ(), "FORWARD_TO="+to), stderr
	check(t, cmd.Start())
	return cmd, &rig.Service{Metrics: "http://" + figuresAt}
}

// An alert tells operators that nothing gets through while the broker is down. It ends when the
// broker is back; then the waiting events are published.
func TestForwardStuck(t *testing.T) {
	t.Parallel()
	cache := newRedis(t)
	w := newWorld(t, kinds()[1], inPostgres)
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	var stderr bytes.Buffer
	cmd, forwarder := w.forwarder(t, cache.URL(), &stderr)
	l := newTimelineOf(t, deliveryRulesAt)
	l.targets["forward"] = forwarder
	acked := func() float64 {
		return w.figures(t, forwarder).values[`watchtower_feed_acked_total{group="outward",topic="all"`]
	}
	l.until(t, w, "the forwarder has come up", func() bool { return l.scraped["watchtower_feed_active"] })
	first, second := w.one(0, "first"), w.one(1, "second")
	w.create(t, []client{w.client(t, s)}, first)
	w.becomes(t, "the first is told", func() bool { return acked() >= 4 })
	for range 30 { // a quarter of an hour
		var consumers []alert
		for _, a := range l.rules {
			if strings.HasPrefix(a.Alert, "WatchtowerConsumer") {
				consumers = append(consumers, a)
			}
		}
		if l.look(t, w, consumers); len(consumers) != 4 || len(l.firing()) > 0 {
			t.Fatalf("of %d alerts %v fire, and nothing is wrong", len(consumers), l.firing())
		}
	}
	before := acked()
	check(t, cache.Kill())
	w.create(t, []client{w.client(t, s)}, second)
	l.fires(t, w, "WatchtowerConsumerStuck")
	check(t, cache.Start(w.ctx))
	l.ends(t, w, "WatchtowerConsumerStuck")
	w.becomes(t, "what had waited is told", func() bool { return acked() >= before+4 })
	w.done(t, s)
	check(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	check(t, s.Stop(w.ctx))
	w.judge(t)
}
