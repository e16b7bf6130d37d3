package worker

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// mute is a log in which streams with a name prefix cannot be read; nil means no prefix.
type mute struct {
	port.Store
	of *string
}

func (m mute) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	if *m.of == "" || !strings.HasPrefix(string(stream), *m.of) {
		return m.Store.ReadStream(ctx, stream, after)
	}
	return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, errAway) }
}

// An intent cannot be read just when a rival has used its nonce, or when it is refused. It
// still counts as in the lane: it gets another nonce, or ends.
func TestUnreadIntent(t *testing.T) {
	for name, c := range map[string]struct {
		trouble func(w *world, s intent.State)
		want    intent.Status
	}{
		"a rival has its nonce": {func(w *world, s intent.State) {
			w.hold = true
			_, err := w.chain.Mine(w.rival(s.Place.Nonce))
			must(w.t, err)
			for range 3 { // until that is final
				w.block()
			}
		}, intent.StatusCompleted},
		"all nodes refuse it": {func(w *world, s intent.State) {
			w.hold = true
			w.refuse(s.Attempts[0].Hash)
		}, intent.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hears = true
			away := ""
			_, l := w.live(0, false)
			l.Relayer.Intents.Store = mute{l.Relayer.Intents.Store, &away}
			a, err := w.opened(l)
			must(t, err)
			w.hold = true
			id := w.ask(w.request(1))[0]
			for len(w.intent(id).Attempts) == 0 || len(w.accepted()) == 0 {
				must(t, w.turns(a, 1))
			}
			c.trouble(w, w.intent(id))
			away = intent.StreamPrefix
			if err := w.turns(a, 1); err == nil {
				t.Fatal("the intent was not to be read")
			}
			if err := w.turns(a, 1); err == nil {
				t.Fatal("it goes on without the intent")
			}
			away, w.hold = "", false
			w.until(a, "it comes out", w.ended(c.want, id))
			w.judge()
		})
	}
}
