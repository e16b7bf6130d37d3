package app

import (
	"errors"
	"net/http"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	delivery "github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// Beside makes what runs beside delivery in a process: it carries intents out with the
// keys of a ring, and calls webhooks over the way, which stay the caller's. Nothing listens:
// what clients ask is answered by the handler.
func Beside(s settings.Settings, in delivery.Inside, ring *keys.Ring, way Way) (delivery.Part, http.Handler, error) {
	r, err := newRelay(s, in, ring, way)
	if err != nil {
		return delivery.Part{}, nil, err
	}
	handler, err := r.handler()
	if err != nil {
		return delivery.Part{}, nil, errors.Join(err, r.close())
	}
	routes, kinds := r.admin()
	return delivery.Part{Run: r.run, Admin: routes, Kinds: kinds, Wants: r.attempts().Wanted}, handler, nil
}

// Way is how webhooks are called. The zero Way is the program's own.
type Way struct {
	// Seeds are what their secrets follow from, in place of those in the file that the
	// settings name.
	Seeds []webhook.Secret
	// Transport is that of [webhook.Options].
	Transport http.RoundTripper
}

// Engine is a database other than the two that the program knows.
type Engine interface {
	Intents() relayer.Queue
	Notices(p notice.Policy) NoticeRows
}
