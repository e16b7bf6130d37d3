package tx

import (
	"github.com/tempo-watchtower/watchtower/domain/fair"
)

// Turns remembers whose turn it is when rows are leased. Every client gets as many rows as
// every other, as long as it has due ones: what one leaves goes to the others. The zero
// Turns begins with the first client by name.
type Turns struct {
	row, repeat string // the clients that got the last odd row, and the last odd repeat
}

// Share is what a client may be leased in one round: at most Rows rows, at most Repeats of
// which have been attempted before.
type Share struct {
	Client        string
	Rows, Repeats int
	tried         bool // it has rows that have been attempted before
}

// Ready is a client that has due rows.
type Ready struct {
	Client  string
	Repeats bool // some of them have been attempted before
}

// Serve leases at most limit rows, of which at most repeats have been attempted before, to
// clients that have due ones. take leases what the shares allow and says, for each, what
// the client got. Serve repeats that until the limit is reached, or nobody has more.
func (t *Turns) Serve(limit, repeats int, ready []Ready, take func([]Share) ([]Share, error)) error {
	for limit > 0 && len(ready) > 0 {
		shares := t.deal(limit, repeats, ready)
		taken, err := take(shares)
		if err != nil {
			return err
		}
		for _, c := range taken {
			limit, repeats = limit-c.Rows, repeats-c.Repeats
		}
		ready = ready[:0:0]
		for i, may := range shares {
			// It got all that it might have: there may be more. In a round in which nobody
			// gets anything, each that might have drops out.
			if taken[i].Rows == may.Rows || may.tried && repeats > 0 && taken[i].Repeats == may.Repeats {
				ready = append(ready, Ready{may.Client, may.tried})
			}
		}
	}
	return nil
}

// deal splits limit and repeats into equal shares. The odd ones go to the clients whose
// turn it is.
func (t *Turns) deal(limit, repeats int, ready []Ready) []Share {
	tried, clients := map[string]bool{}, make([]string, len(ready))
	for i, r := range ready {
		clients[i], tried[r.Client] = r.Client, r.Repeats
	}
	place, repeating := map[string]int{}, []string(nil)
	shares := make([]Share, len(clients))
	for i, client := range fair.InTurn(t.row, clients) {
		shares[i], place[client] = Share{Client: client, Rows: limit / len(clients), tried: tried[client]}, i
		if i < limit%len(clients) {
			shares[i].Rows++
			t.row = client
		}
		if tried[client] && shares[i].Rows > 0 {
			repeating = append(repeating, client)
		}
	}
	repeats = min(repeats, limit)
	for i, client := range fair.InTurn(t.repeat, repeating) {
		s := &shares[place[client]]
		s.Repeats = repeats / len(repeating)
		if i < repeats%len(repeating) {
			s.Repeats++
			t.repeat = client
		}
		s.Repeats = min(s.Repeats, s.Rows)
	}
	return shares
}
