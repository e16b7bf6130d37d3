package simulation

import (
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// secrets searches for secrets of webhooks (P28): possible secrets in their URLs, and the
// signing secrets.
type secrets struct {
	log, events, answers, bodies, rows *promises.Watched

	mu sync.Mutex // guards log, which replicas write
}

func newSecrets(h *hooks) *secrets {
	planted := map[string][]byte{}
	for i, s := range h.caller.Seeds {
		planted[fmt.Sprintf("seed %d", i)] = []byte(s.Reveal())
	}
	for _, r := range h.receivers {
		planted["path of "+r.host] = fmt.Appendf(nil, "%x", h.drawn("path", r.number))
		planted["token of "+r.host] = fmt.Appendf(nil, "%x", h.drawn("token", r.number))
		for i, secret := range r.secrets() {
			planted[fmt.Sprintf("secret %d of %s", i, r.host)] = []byte(secret)
		}
	}
	c := promises.NewCanaries(planted)
	return &secrets{
		log: c.Watch("a log"), events: c.Watch("the log of events"), answers: c.Watch("an answer"), bodies: c.Watch("a webhook"),
		rows: c.Watch("a row"),
	}
}

// Write receives the replicas' logs.
func (s *secrets) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// logged is a log that is also searched. Debug messages are not searched: they are many, and
// have the same content about webhooks.
func (s *secrets) logged(log *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(log.Handler(), slog.NewTextHandler(s, nil)))
}

// recorded searches an event.
func (s *secrets) recorded(e eventlog.Recorded) []promises.Violation {
	before := len(s.events.Found())
	write(s.events, e.Data)
	return s.events.Found()[before:]
}

// answered searches every answer, except to a webhook's owner who requests its secrets.
func (h *hooks) answered(r *wish, out *recorder) {
	if h != nil && r.what != ownersSecrets {
		write(h.secrets.answers, out.body.Bytes())
	}
}

func write(to io.Writer, p []byte) {
	_, _ = to.Write(p) // it never fails
}

// watched searches rows.
func (h *hooks) watched(rows iter.Seq2[string, []byte]) iter.Seq2[string, []byte] {
	if h == nil {
		return rows
	}
	return func(yield func(string, []byte) bool) {
		for name, row := range rows {
			if write(h.secrets.rows, row); !yield(name, row) {
				return
			}
		}
	}
}

// found returns the other findings.
func (s *secrets) found() (all []promises.Violation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range []*promises.Watched{s.log, s.answers, s.bodies, s.rows} {
		all = append(all, w.Found()...)
	}
	return all
}
