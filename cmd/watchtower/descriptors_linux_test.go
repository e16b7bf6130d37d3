package main_test

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
)

// Clients take every descriptor that the process may have, for a while: work goes
// on over the connections that there are, and when the clients go, so does the rest.
func TestFewDescriptors(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		warm, _ := rig.Payments(9500, 20)
		load(w.ctx, s, warm, 4)
		open, err := os.ReadDir("/proc/" + strconv.Itoa(s.Pid()) + "/fd")
		check(t, err)
		const spare = 20
		limit := unix.Rlimit{Cur: uint64(len(open) + spare), Max: uint64(len(open) + spare)}
		check(t, unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, &limit, nil))

		payments, to := rig.Payments(9501, 200)
		load(w.ctx, s, payments[:100], 2) // these have their connections
		idle := make([]net.Conn, 3*spare)
		for i := range idle {
			idle[i], err = net.DialTimeout("tcp", strings.TrimPrefix(s.URL, "http://"), time.Second)
			check(t, err) // by the kernel; the process may never accept it
		}
		w.wait(3 * time.Second)
		for _, c := range idle {
			check(t, c.Close())
		}
		failed, longest := w.insist(t, payments, 4, s.URL)
		t.Logf("%d requests failed, the longest acceptance took %v", failed, longest)
		w.delivered(t, s.URL, payments, rig.Executed)
		w.paidOnce(t, to, len(payments))
		acceptedOnce(t, w, s.URL, payments)
		check(t, s.Stop(w.ctx))
	})
}
