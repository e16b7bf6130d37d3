package commands

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Validate answers as [Submit.Batch] would, without effects: it stores nothing, records
// nothing and asks no node. The state of a transaction that would be accepted has no
// status.
func (s *Submit) Validate(ctx context.Context, id chain.ID, raws [][]byte, clients Clients) ([]Submission, error) {
	decode := s.Decoders[id]
	if decode == nil {
		return nil, Unserved(id, s.Decoders)
	}
	answers := make([]Submission, len(raws))
	signed := s.decodeAll(decode, id, raws, answers)
	s.late(ctx, signed, clients, answers)
	first := map[chain.Hash]int{} // the first place of each hash in the batch
	var places []*Reservation
	defer func() {
		for _, place := range places {
			place.Return()
		}
	}()
	for i, t := range signed {
		if answers[i].Err != nil || answers[i].Known {
			continue
		}
		if earlier, twice := first[t.Hash]; twice {
			answers[i] = answers[earlier]
			answers[i].Known = answers[i].Err == nil
			continue
		}
		first[t.Hash] = i
		there, err := s.Transactions.Load(ctx, tx.Stream(id, t.Hash))
		if err != nil {
			return nil, err
		}
		if there.State.OwnedBy(clients(i)) {
			answers[i] = Submission{State: there.State, Known: true}
			continue
		}
		// A transaction that another client owns takes a place too: if the quota is used up, the answer
		// must not reveal that it exists.
		var place *Reservation
		if place, answers[i].Err = s.reserve(ctx, t, clients(i), len(raws[i])); answers[i].Err != nil {
			continue
		}
		places = append(places, place)
		answers[i].State.Accepted = s.accepted(t, raws[i], clients(i))
	}
	return answers, nil
}
