package app

import (
	"errors"
	"net/http"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// Extension builds the relay as an extension of delivery. It carries out intents with the keys of
// a ring, and calls webhooks through ports; both still belong to the caller. It opens no listener:
// the returned handler serves the API of intents.
func Extension(s settings.Settings, in *delivery.App, ring *keys.Ring, ports Ports) (delivery.Extension, http.Handler, error) {
	r, err := newRelay(s, in, ring, ports)
	if err != nil {
		return delivery.Extension{}, nil, err
	}
	handler, err := r.handler()
	if err != nil {
		return delivery.Extension{}, nil, errors.Join(err, r.close())
	}
	routes, kinds := r.admin()
	return delivery.Extension{Run: r.run, Admin: routes, Kinds: kinds, Wants: r.attempts().Wanted}, handler, nil
}

// Ports are the relay's external dependencies beside delivery's. The zero Ports are the program's
// own.
type Ports struct {
	// Seeds are the seeds of webhook secrets, in place of the configured file.
	Seeds []webhook.Secret
	// Transport is used as [webhook.Options.Transport].
	Transport http.RoundTripper
	// Tables are the relay's, if delivery's storage is no database of the program's.
	Tables Tables
}

// Tables are the relay's queues, in the database of delivery's due queue.
type Tables interface {
	Intents() worker.Queue
	Notices(p notice.Policy) NoticeRows
}

// tablesOf returns the relay's tables in delivery's storage.
func tablesOf(s delivery.Storage, ports Ports) (Tables, error) {
	switch {
	case ports.Tables != nil:
		return ports.Tables, nil
	case s.Postgres != nil:
		return inPostgres{s.Postgres}, nil
	case s.Embedded != nil:
		return inEmbedded{s.Embedded}, nil
	}
	return nil, errors.New("the storage has no tables for intents")
}

// queueOf returns the queue of intents, whose callers in this process wait in line.
func queueOf(t Tables) worker.Queue { return worker.InLine(t.Intents()) }

type inPostgres struct{ db *postgres.DB }

func (t inPostgres) Intents() worker.Queue              { return t.db.Intents() }
func (t inPostgres) Notices(p notice.Policy) NoticeRows { return t.db.Notices(p) }

type inEmbedded struct{ db *embedded.DB }

func (t inEmbedded) Intents() worker.Queue              { return t.db.Intents() }
func (t inEmbedded) Notices(p notice.Policy) NoticeRows { return t.db.Notices(p) }
