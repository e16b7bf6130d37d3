package intents_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// inRow requests n intents of one ordering group and returns their ids.
func (s *script) inRow(row string, n int) (ids []chain.IntentID) {
	for i := range n {
		r := wish(i)
		r.Key, r.Order = r.Key+row, row
		s.log(r.ID(), intent.Requested{ID: r.ID(), Digest: r.Digest(), Request: r, At: epoch})
		ids = append(ids, r.ID())
	}
	return ids
}

func TestRows(t *testing.T) {
	elsewhere := intent.Assigned{Sequence: 1, Assignment: 1, Place: intent.Place{Signer: chain.Address{2}, Nonce: 9}, Token: 1, At: epoch}
	otherKey := intent.Assigned{Sequence: 1, Assignment: 1, Place: intent.Place{Signer: chain.Address{1}, NonceKey: chain.NonceKey{1}, Nonce: 9}, Token: 1, At: epoch}
	given := intent.Evidence{Kind: intent.Released}
	rival := intent.Evidence{Kind: intent.Rival, Block: main7}
	of := func(do func(s *script, a, b, c chain.IntentID)) func(*script) {
		return func(s *script) {
			ids := s.inRow("row", 3)
			do(s, ids[0], ids[1], ids[2])
		}
	}
	run(t, []scenario{
		{"rising", 0, of(func(s *script, a, b, c chain.IntentID) {
			s.log(a, assigned(1, 1, 5))
			s.log(b, assigned(1, 1, 6))
			s.log(c, assigned(1, 1, 8))
		})},
		{"falling", promises.P35, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, assigned(1, 1, 6))
			s.log(b, assigned(1, 1, 5))
		})},
		{"the first is not there", promises.P35, of(func(s *script, _, b, _ chain.IntentID) { s.log(b, assigned(1, 1, 5)) })},
		{"the second is not there", promises.P35, of(func(s *script, a, _, c chain.IntentID) {
			s.log(a, assigned(1, 1, 5))
			s.log(c, assigned(1, 1, 6))
		})},
		{"another signer", promises.P35, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, assigned(1, 1, 5))
			s.log(b, elsewhere)
		})},
		{"another nonce key", promises.P35, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, assigned(1, 1, 5))
			s.log(b, otherKey)
		})},
		{"of another row", 0, func(s *script) {
			s.inRow("one", 1)
			s.log(s.inRow("two", 1)[0], assigned(1, 1, 5))
		}},
		{"of no row", 0, func(s *script) {
			s.log(first, requested(1))
			s.log(second, requested(2), assigned(1, 1, 5))
		}},
		{"it has ended", 0, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, intent.Canceled{Sequence: 1, At: epoch})
			s.log(b, elsewhere)
		})},
		{"it is to end", 0, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, assigned(1, 1, 5), intent.CancelRequested{Reason: intent.Withdrawn, At: epoch})
			s.log(b, elsewhere)
		})},
		{"given back, and passed", promises.P35, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, assigned(1, 1, 5), requeued(0, 1, given))
			s.log(b, assigned(1, 1, 6))
		})},
		{"given back, all of them", 0, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, assigned(1, 1, 5))
			s.log(b, assigned(1, 1, 6), requeued(0, 1, given))
			s.log(a, requeued(0, 1, given), assigned(2, 2, 7))
			s.log(b, assigned(2, 2, 8))
		})},
		{"it had come out, by a block that has left the chain", 0, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, assigned(1, 1, 5), attempted(2, 1, 1, intent.First), receipt(3, 1, &main7, 1), confirmed(4, 1, false, main7), completed(5, 1, main7))
			s.log(a, intent.Reorged{Was: main7, Now: fork7}, receipt(6, 1, nil, 0), confirmed(7, 1, true))
			s.log(b, elsewhere)
		})},
		{"it is mined, and has not come out", promises.P35, of(func(s *script, a, b, _ chain.IntentID) {
			s.log(a, assigned(1, 1, 5), attempted(2, 1, 1, intent.First), receipt(3, 1, &main7, 1), confirmed(4, 1, false, main7))
			s.log(b, elsewhere)
		})},
		{"its nonce was somebody else's", 0, of(func(s *script, a, b, c chain.IntentID) {
			s.log(a, assigned(1, 1, 5))
			s.log(b, assigned(1, 1, 6))
			s.log(a, requeued(0, 1, rival))
			s.log(c, assigned(1, 1, 7))
			s.log(a, assigned(2, 2, 8))
		})},
	})
}
