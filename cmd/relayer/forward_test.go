package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// free is an address that nobody listens at.
func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer func() { check(t, l.Close()) }()
	return l.Addr().String()
}

// What clients are told is published to a broker, those of an intent in order and without
// a gap.
func TestForward(t *testing.T) {
	t.Parallel()
	cache, err := server.NewRedis(testenv.Need(t, testenv.RedisBinVar))
	check(t, err)
	t.Cleanup(func() { check(t, cache.Remove()) })
	check(t, cache.Start(t.Context()))
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
	figuresAt := free(t)
	cmd := exec.CommandContext(w.ctx, program, append([]string{"forward", "--as", "told", "--metrics", figuresAt}, w.flags...)...)
	cmd.Env, cmd.Stderr = append(cmd.Environ(), "FORWARD_TO="+cache.URL()), &stderr
	check(t, cmd.Start())
	for n := int64(0); n < int64(want); {
		if n, err = client.XLen(w.ctx, "told").Result(); err != nil {
			t.Fatalf("%d of %d are published: %v: %s", n, want, err, &stderr)
		}
		if err := commands.Pause(w.ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("%d of %d are published: %v: %s", n, want, err, &stderr)
		}
	}
	w.becomes(t, "the forwarder tells how far it is", func() bool {
		told := w.figures(t, &rig.Service{Metrics: "http://" + figuresAt}).values
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
