package app

import (
	"testing"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"

	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
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
