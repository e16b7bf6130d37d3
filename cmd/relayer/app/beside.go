package app

import (
	"errors"
	"net/http"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	delivery "github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// Beside makes what runs beside delivery in a process: it carries intents out with the
// keys of a ring, which stay the caller's. Nothing listens: what clients ask is answered
// by the handler.
func Beside(s settings.Settings, in delivery.Inside, ring *keys.Ring) (delivery.Part, http.Handler, error) {
	r, err := newRelay(s, in, ring)
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

// Engine is a database other than the two that the program knows.
type Engine interface{ Intents() relayer.Queue }
