package commands_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// Every keyring on the log learns of new and revoked keys within moments.
func TestKeyringFollowsTheLog(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the test is over with it
	handler := commands.AccessKeys{Store: db.Log(), Codec: access.Codec(), Random: rand.Reader}
	keys := commands.Keys{AccessKeys: handler, Now: time.Now}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	create := func(name string) (string, access.Key) {
		t.Helper()
		token, key, err := keys.Create(ctx, access.Key{Name: name, Scopes: []access.Scope{access.Read}}, eventlog.Meta{Actor: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return token, key
	}
	early, earlyKey := create("early")

	ring := &commands.Keyring{Keys: handler, Log: slog.New(slog.DiscardHandler)}
	if err := ring.Load(ctx); err != nil {
		t.Fatal(err)
	}
	good := func(token string) bool { _, ok := ring.State().Authenticate(token, time.Now()); return ok }
	if !good(early) {
		t.Error("what was there before is not known after loading")
	}
	between, _ := create("between") // after Load, before Run
	var running sync.WaitGroup
	running.Go(func() { ring.Run(ctx) })
	defer running.Wait()
	defer stop()
	becomes := func(token string, want bool) {
		t.Helper()
		for good(token) != want {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("never became %v", want)
			}
		}
	}
	becomes(between, true)
	late, _ := create("late")
	becomes(late, true)
	for range 2 { // the second time adds nothing
		if entry, err := keys.Revoke(ctx, earlyKey.ID, "lost", eventlog.Meta{}); err != nil || entry.InForce(time.Now()) {
			t.Fatalf("%+v, %v", entry, err)
		}
	}
	becomes(early, false)
	becomes(late, true)

	listed, err := keys.List(ctx)
	if err != nil || len(listed) != 3 || listed[0].Key.Name != "early" || listed[0].Reason != "lost" || listed[2].Key.Name != "late" {
		t.Errorf("%+v, %v", listed, err)
	}
	for recorded, err := range db.Log().ReadStream(ctx, access.Stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{early, between, late} {
			if secret := token[len(token)-64:]; bytes.Contains(recorded.Data, []byte(secret)) {
				t.Error("a secret is in the log")
			}
		}
		if recorded.Version <= 3 && recorded.Meta.Actor != "test" {
			t.Errorf("version %d was wished by %q", recorded.Version, recorded.Meta.Actor)
		}
	}
}
