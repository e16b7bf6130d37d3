package app

import (
	"errors"
	"net/http"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// Beside builds the part that runs beside delivery in a process. It carries out intents with the
// keys of a ring, and calls webhooks over the way; both still belong to the caller. It opens no
// listener: the returned handler serves the API of intents.
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

// Way configures how webhooks are called. The zero Way is the program's own.
type Way struct {
	// Seeds are the seeds of webhook secrets, in place of the configured file.
	Seeds []webhook.Secret
	// Transport is used as [webhook.Options.Transport].
	Transport http.RoundTripper
}

// Engine is a database other than the two known to the program.
type Engine interface {
	Intents() worker.Queue
	Notices(p notice.Policy) NoticeRows
}
