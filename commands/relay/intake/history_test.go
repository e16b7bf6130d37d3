package intake_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// rivals is a store on which another command gets in before the first append.
type rivals struct {
	port.Store
	first func()
}

func (r rivals) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	r.first()
	return r.Store.Append(ctx, stream, expected, events...)
}

// size returns the number of bytes of an intent's events.
func size(t *testing.T, d *intake.Desk, r intent.Request) (bytes int) {
	t.Helper()
	for recorded, err := range d.Intents.Store.ReadStream(t.Context(), intent.Stream(r.ID()), 0) {
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(recorded.Data)
	}
	return bytes
}

// A command counts all bytes that it reads of the client's intent, also when it meets another
// command, and none of another client's intent.
func TestCommandsCountBytes(t *testing.T) {
	d := newDesk(t)
	r := asked()
	if a := d.Create(t.Context(), []intent.Request{r}, eventlog.Meta{})[0]; a.Err != nil {
		t.Fatal(a.Err)
	}
	owner, other := r.Client, "other"
	requested := size(t, d, r)
	if a := d.Cancel(t.Context(), &other, r.ID(), "", eventlog.Meta{}); !errors.Is(a.Err, intent.ErrUnknown) || a.Read != 0 {
		t.Errorf("another client's: %v, and %d bytes", a.Err, a.Read)
	}
	spedUp, raced := 0, *d
	raced.Intents.Store = rivals{d.Intents.Store, sync.OnceFunc(func() {
		if a := d.SpeedUp(t.Context(), &owner, r.ID(), intent.NewAmount(7), eventlog.Meta{}); a.Err != nil || a.Read != requested {
			t.Errorf("the first: %v, and %d bytes, want %d", a.Err, a.Read, requested)
		}
		spedUp = size(t, d, r)
	})}
	if a := raced.Cancel(t.Context(), &owner, r.ID(), "", eventlog.Meta{}); a.Err != nil || spedUp <= requested || a.Read != requested+spedUp {
		t.Errorf("the second: %v, and %d bytes, want %d and %d", a.Err, a.Read, requested, spedUp)
	}
}
