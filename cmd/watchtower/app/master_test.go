package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A store gets a vault's key by itself until it may hold what was sealed: API keys, which
// are made before the service first starts, are not.
func TestOpenMaster(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	file := filepath.Join(t.TempDir(), "vault.key")
	opens := func() error {
		_, err := app.OpenMaster(t.Context(), file, db.Log())
		return err
	}
	record := func(stream event.Stream) {
		t.Helper()
		e := event.Event{ID: event.DeriveID(stream, event.ID{1}, 0), Name: "something.v1", Data: []byte("{}")}
		if _, err := db.Log().Append(t.Context(), stream, 0, e); err != nil {
			t.Fatal(err)
		}
	}
	record(access.Stream)
	if err := opens(); err != nil {
		t.Fatalf("with an API key alone: %v", err)
	}
	record("tx-1")
	if err := opens(); err != nil {
		t.Fatalf("with its key: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := opens(); err == nil {
		t.Error("a store that holds more gets another key")
	}
}
