package broadcaster_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// scripted are nodes that give one answer after the other.
type scripted struct {
	answers []tx.Answer
	got     []tx.Sending
}

func (s *scripted) Send(_ context.Context, _ []byte, _ chain.Hash, _ int, of tx.Sending) []tx.Answer {
	s.got = append(s.got, of)
	return s.answers[len(s.got)-1 : len(s.got)]
}

func (s *scripted) SendAll(ctx context.Context, raw []byte, hash chain.Hash, attempt int, of tx.Sending) []tx.Answer {
	return s.Send(ctx, raw, hash, attempt, of)
}

// An attempt that is refused because of the rate of calls, by a node or by our own budget, was not
// made: the next one is a first attempt again. After any other answer the next one is a repeat.
func TestRefusedForTheRateStaysFirst(t *testing.T) {
	w := newWorld(t, 2)
	limited := tx.Answer{Endpoint: "a", Class: tx.Retry, Cause: tx.RateLimited}
	nodes := &scripted{answers: []tx.Answer{limited, limited, limited, {Endpoint: "a", Class: tx.Retry, Cause: tx.Funds}, limited, {Endpoint: "a", Class: tx.Taken}, {Endpoint: "a", Class: tx.Known}}}
	w.Nodes = nodes
	_, row := w.accept(plain(0))
	row.Client = "ann"
	for range nodes.answers {
		w.attempt(&row)
	}
	first, repeat := tx.Sending{Client: "ann"}, tx.Sending{Client: "ann", Repeat: true}
	if diff := cmp.Diff([]tx.Sending{first, first, first, first, repeat, repeat, repeat}, nodes.got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
