package main_test

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// Clients use up the process's file descriptors for a while. Existing connections keep working,
// and after the clients leave everything does.
func TestFewDescriptors(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t)
		check(t, s.Start(w.ctx))
		warm, _ := rig.Payments(9500, 20)
		w.submit(t, s, warm, 4)
		open, err := os.ReadDir("/proc/" + strconv.Itoa(s.Pid()) + "/fd")
		check(t, err)
		const spare = 20
		limit := unix.Rlimit{Cur: uint64(len(open) + spare), Max: uint64(len(open) + spare)}
		check(t, unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, &limit, nil))

		payments, to := rig.Payments(9501, 200)
		w.submit(t, s, payments[:100], 2) // these clients have their connections
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
		check(t, s.Stop(w.ctx))
	})
}

// With little memory and one busy processor, the service is slower and still correct.
func TestLittleMemory(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		s := w.service(t, "GOMEMLIMIT=48MiB", "GOMAXPROCS=1")
		check(t, s.Start(w.ctx))
		check(t, unix.Setpriority(unix.PRIO_PROCESS, s.Pid(), 19))
		busy, rest := context.WithCancel(w.ctx)
		var spinning sync.WaitGroup
		for range 2 {
			spinning.Go(func() {
				for busy.Err() == nil { //nolint:revive // it is what takes the processor
				}
			})
		}
		payments, to := rig.Payments(9600, 300)
		failed, longest := w.insist(t, payments, 16, s.URL)
		rest()
		spinning.Wait()
		w.delivered(t, s.URL, payments, rig.Executed)
		memory, err := os.ReadFile("/proc/" + strconv.Itoa(s.Pid()) + "/status")
		check(t, err)
		_, peak, _ := strings.Cut(string(memory), "VmHWM:")
		peak, _, _ = strings.Cut(peak, "\n")
		t.Logf("%d requests failed, the longest acceptance took %v, at most %s were held", failed, longest, strings.TrimSpace(peak))
		w.paidOnce(t, to, len(payments))
		check(t, s.Stop(w.ctx))
	})
}
