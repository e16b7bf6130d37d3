package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// note matches a row's free text about attempts that were not recorded one by one. The log does
// not contain it.
var note = regexp.MustCompile(`"[nN]ote":"([^"\\]|\\.)*"`)

// A service moves its events into the archive and keeps delivering. Read models rebuilt from log
// and archive equal the served ones, the audit passes, a flipped byte is found and named, and a
// restore brings everything back.
func TestArchive(t *testing.T) {
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		storedHere(t, "the events of an event store are not archived")
		w := newWorld(t, store, "--block-time", "1")
		shelf := filepath.Join(w.dir, "archive")
		env := []string{"WATCHTOWER_ARCHIVE=file:" + shelf, "WATCHTOWER_RETENTION_EVENTS=0s", "WATCHTOWER_RETENTION_SEGMENT=100"}
		s := w.service(t, "WATCHTOWER_RETENTION_PARTITION=500")
		check(t, s.Start(w.ctx))
		payments, _ := rig.Payments(9900, 160)
		w.submit(t, s, payments, 8)
		w.delivered(t, s.URL, payments, rig.Sealed)
		check(t, s.Stop(w.ctx))
		w.judge(t) // while the store has all events

		s.Env = append(s.Env, env...)
		check(t, s.Start(w.ctx))
		w.until(t, func() bool {
			_, figures := get(w.ctx, s.Metrics+"/metrics")
			return strings.Contains(figures, "watchtower_archive_begins_position ") &&
				!strings.Contains(figures, "watchtower_archive_begins_position 1\n")
		})
		more, _ := rig.Payments(9901, 4)
		w.submit(t, s, more, 2)
		w.delivered(t, s.URL, append(more, payments[0]), rig.Sealed)
		w.until(t, func() bool { // rows may lag behind the log
			_, newest := get(w.ctx, fmt.Sprintf("%s/v1/transactions?limit=%d", s.URL, len(more)))
			return strings.Count(newest, `"finalized":true`) == len(more)
		})
		check(t, s.Stop(w.ctx))

		run := func(want int, says string, env []string, args ...string) string {
			t.Helper()
			out, status := w.command(t, env, args...)
			if status != want || !strings.Contains(out, says) {
				t.Errorf("%v ended with %d, want %d and %q: %s", args, status, want, says, out)
			}
			return out
		}
		served := note.ReplaceAllString(run(0, `"table":"transactions"`, env, "projections", "dump"), "")
		run(0, "rebuilt up to", env, "projections", "rebuild", "--fresh", "--quiet")
		made := note.ReplaceAllString(run(0, "", env, "projections", "dump"), "")
		if diff := cmp.Diff(strings.Split(served, "\n"), strings.Split(made, "\n")); diff != "" || strings.Count(served, "\n") < len(payments)+len(more) {
			t.Errorf("read models that were made anew (+) are others than those that served (-):\n%s", diff)
		}
		run(2, "positions below", nil, "audit", "verify")
		run(0, "no faults", env, "audit", "verify")

		name := archive.Name(101, 201)
		sound := readFile(t, filepath.Join(shelf, name))
		damaged := append([]byte(nil), sound...)
		damaged[len(damaged)/2] ^= 1
		check(t, os.WriteFile(filepath.Join(shelf, name), damaged, 0o600))
		run(1, name, env, "audit", "verify")
		run(1, name, env, "archive", "verify")
		check(t, os.WriteFile(filepath.Join(shelf, name), sound, 0o600))
		run(0, "restored positions 1 to ", env, "archive", "restore", "--from", "1")
		run(0, "no faults", nil, "audit", "verify") // on the store alone
	})
}

// until polls until a condition is true.
func (w *world) until(t *testing.T, true func() bool) {
	t.Helper()
	for !true() {
		select {
		case <-w.ctx.Done():
			t.Fatal(w.ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
