package app

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// Commands about a webhook keep snapshots, unless snapshots are off.
func TestWebhookCommandsKeepSnapshots(t *testing.T) {
	for every, want := range map[int]bool{0: false, 500: true} {
		db, err := embedded.Open("", embedded.Options{Window: 16})
		must(t, err)
		master, err := payload.NewMaster(bytes.Repeat([]byte{1}, payload.KeyBytes))
		must(t, err)
		seed, err := webhook.NewSecret(rand.Reader)
		must(t, err)
		s := resolved(t)
		s.Webhooks.SecretsFile = "replaced by seeds"
		in := &delivery.App{Store: db.Log(), Settings: delivery.Settings{SnapshotsEvery: every}}
		in.Ports = delivery.Ports{Master: master, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler)}
		in.Ports.Storage.Snapshots = db.Snapshots()
		n, err := newNotices(s.Webhooks, 1000, in, inEmbedded{db}, Ports{Seeds: []webhook.Secret{seed}}, nil)
		must(t, err)
		id := notice.EndpointID{1}
		must(t, n.rows.Enqueue(t.Context(), "fill", 0, 1, []notice.News{{Key: notice.Key{Endpoint: id}, URL: "https://example.org/"}}))
		for range 150 {
			must(t, n.operator.Redeliver(t.Context(), id, nil, eventlog.Meta{Actor: "test"}))
		}
		if _, kept, err := db.Snapshots().Snapshot(t.Context(), notice.Stream(id)); err != nil || kept != want {
			t.Errorf("snapshots every %d: one is kept %t, %v", every, kept, err)
		}
		n.caller.Sender.Close()
		must(t, db.Close())
	}
}
