package app

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// The lanes of a process claim from the store in turns.
func TestQueueIsInLine(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	q, err := Queue(db)
	must(t, err)
	if _, is := q.(*worker.Line); !is {
		t.Errorf("they use a %T", q)
	}
}
