package postgres_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	domain "github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// A connection breaks between the two statements of a claim, before the second is sent or
// before it is answered. The claim is retried, and returns the stored state.
func TestClaimIsCutInTwo(t *testing.T) {
	direct := open(t, postgres.Options{})
	p, url := through(t, direct.url)
	store := &opener{t: t, url: url, o: direct.o}
	store.start()
	t.Cleanup(func() { store.close() }) //nolint:errcheck // not what is tested
	ctx := soon(t)
	claim := func(id byte) domain.Stage {
		t.Helper()
		c := domain.Claim{ID: event.ID{id}, Name: domain.Name{1}, Print: domain.Print{1}, Hold: time.Minute, Keep: time.Hour}
		stage, _, err := store.db.Requests.Claim(ctx, c)
		must(t, err)
		return stage
	}
	if got := claim(1); got != domain.Claimed {
		t.Fatalf("the first claim: stage %d", got)
	}
	for _, what := range []loss{request, reply} {
		for range 3 { // so that the session has prepared both statements: a piece is one of them
			claim(2)
		}
		p.loseAfter(1, what)
		if got := claim(3); got != domain.Running {
			t.Errorf("loss %d: stage %d", what, got)
		}
		if p.take() != nothing {
			t.Error("nothing was lost")
		}
	}
}
