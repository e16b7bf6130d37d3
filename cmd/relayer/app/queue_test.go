package app

import (
	"errors"
	"testing"
	"time"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// The lanes of a process claim from the store in turns.
func TestQueueIsInLine(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	tables, err := tablesOf(delivery.Storage{Embedded: db}, Ports{})
	must(t, err)
	if q := queueOf(tables); !isLine(q) {
		t.Errorf("they use a %T", q)
	}
}

func isLine(q worker.Queue) bool {
	_, is := q.(*worker.Line)
	return is
}

// The webhook deliveries of a client that are in the store count towards its quota.
func TestDeliveriesHaveAQuota(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	rows := db.Notices(notice.DefaultPolicy())
	var news []notice.News
	for i := range 20 {
		key := notice.Key{Endpoint: notice.EndpointID{1}, Intent: chain.IntentID{byte(i)}, Seq: 1}
		news = append(news, notice.News{Key: key, Client: "ann", URL: "u", Body: []byte("{}")})
	}
	must(t, rows.Enqueue(t.Context(), "notifier", 0, 1, news))
	r := &relay{
		settings: settings.Settings{Quotas: settings.Quotas{Intents: 10, Webhooks: 10, Deliveries: 21}}, queue: db.Intents(), notices: &notices{rows: rows},
		in: &delivery.App{Ports: delivery.Ports{Now: time.Now}},
	}
	var desk intake.Desk
	r.limit(&desk)
	desk.Deliveries.Used = nil
	for client, want := range map[string]error{"ann": access.ErrQuotaExceeded, "bob": nil} {
		if _, err := desk.Deliveries.Take(t.Context(), client, 2); !errors.Is(err, want) {
			t.Errorf("%s: %v", client, err)
		}
	}
}
