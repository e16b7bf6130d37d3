package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// The program publishes what is in a store, while another process writes it, and goes
// on where it was.
func TestForward(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	options, err := redis.ParseURL(testenv.Need(t, testenv.RedisVar))
	check(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() }) //nolint:errcheck // the test is over
	stream := "forward-" + testenv.Random(8)
	t.Cleanup(func() { client.Del(context.Background(), stream) })

	for round := range 2 {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, program, "forward", "--store", "embedded:"+dir, "--as", stream)
		cmd.Env = append(cmd.Environ(), "FORWARD_TO="+testenv.Need(t, testenv.RedisVar))
		cmd.Stderr = &stderr
		check(t, cmd.Start())
		name := event.Stream(fmt.Sprintf("tx-%d", round))
		for n := range 5 {
			_, err := db.Log().Append(ctx, name, event.Version(n), event.Event{
				ID: event.DeriveID(name, event.ID{}, n), Name: "test.happened.v1", Data: fmt.Appendf(nil, `{"n":%d}`, n),
			})
			check(t, err)
		}
		for n := int64(0); n < int64(5*(round+1)); {
			n, err = client.XLen(ctx, stream).Result()
			check(t, err)
		}
		check(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
	}
	entries, err := client.XRange(ctx, stream, "-", "+").Result()
	check(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprint(e.Values["payload"]))
	}
	if want := strings.Repeat(`{"n":0} {"n":1} {"n":2} {"n":3} {"n":4} `, 2); strings.Join(got, " ")+" " != want {
		t.Errorf("published: %s", got)
	}
}
