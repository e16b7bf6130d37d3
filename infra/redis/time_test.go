package redis

import (
	"bufio"
	"context"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// No command reads Redis's clock or sets an expiry, so a jump of its clock has no effect. A set
// that vanishes because of a foreign expiry is like an emptied one, and is filled again.
func TestTimeOfRedis(t *testing.T) {
	s := newServer(t)
	c := client(t, s)
	heard := monitor(t, s)

	r := newReplica(t, s.URL())
	due := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	rebuilt := make(chan error, 1)
	go func() {
		rebuilt <- r.Rebuild(ctx, func(context.Context, chain.ID, int) ([]tx.Work, error) {
			return []tx.Work{{Hash: hash(1), NextAt: due.Add(time.Hour)}, {Hash: hash(2), NextAt: due.Add(time.Hour), Attempts: 1}}, nil
		})
	}()
	in := func(key string) bool { return c.ZCard(t.Context(), key).Val() > 0 }
	eventually(t, "the sets are not filled", func() bool { return in(readyKey(1)) && in(retryKey(1)) })
	r.Applied([]tx.Change{opened(3, due)})
	woken(t, r, r)
	must(t, c.PExpire(t.Context(), readyKey(1), time.Millisecond).Err())
	eventually(t, "a set outlives its time", func() bool { return !in(readyKey(1)) })
	r.Applied([]tx.Change{opened(4, time.Now())})
	woken(t, r, r)
	r.Applied([]tx.Change{opened(5, time.Now().Add(time.Hour))})
	eventually(t, "a set is not filled again", func() bool { return in(readyKey(1)) })
	if left := c.PTTL(t.Context(), readyKey(1)).Val(); left != -1 {
		t.Errorf("a set of ours is to live for %v", left)
	}
	stop()
	<-rebuilt

	ours := []string{"zadd", "zrem", "zremrangebyscore", "zremrangebyrank", "unlink", "del", "ping"}
	ofTest := []string{"zcard", "pexpire", "pttl"}
	ofLibrary := []string{"hello", "client", "select"}
	met := heard()
	for name := range met {
		if !slices.Contains(slices.Concat(ours, ofTest, ofLibrary), name) {
			t.Errorf("Redis is asked to %s", name)
		}
	}
	for _, name := range []string{"zadd", "zremrangebyscore", "unlink", "pexpire"} {
		if met[name] == 0 {
			t.Errorf("no %s was heard among %v", name, met)
		}
	}
}

// monitor counts a server's commands (redis.io/commands/monitor). It uses a connection of its
// own, because the library's has a race.
func monitor(t *testing.T, s *server.Redis) (heard func() map[string]int) {
	t.Helper()
	u, err := url.Parse(s.URL())
	must(t, err)
	conn, err := net.Dial("tcp", u.Host)
	must(t, err)
	_, err = conn.Write([]byte("MONITOR\r\n"))
	must(t, err)
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %q, %v", lines.Text(), lines.Err())
	}
	asked := regexp.MustCompile(`\] "([a-zA-Z]+)"`)
	met := map[string]int{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			if m := asked.FindStringSubmatch(lines.Text()); m != nil {
				met[strings.ToLower(m[1])]++
			}
		}
	}()
	stop := sync.OnceFunc(func() { conn.Close(); <-ended }) //nolint:errcheck // it was only listened to
	t.Cleanup(stop)
	return func() map[string]int { stop(); return met }
}
