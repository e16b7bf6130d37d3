package tx

import (
	"github.com/tempo-watchtower/watchtower/domain/fair"
)

// Turns remembers whose turn it is when rows are leased. Each client gets an equal share while it
// has due rows; unused shares go to the others. The zero Turns begins with the first client by
// name.
type Turns struct {
	row, repeat string // the clients that got the last remainder row and the last remainder retry
}

// Share is the limit of one client's lease in one round: at most Rows rows, of which at most
// Repeats have been attempted before.
type Share struct {
	Client        string
	Rows, Repeats int
	// More, of a leased count, says that the client may have more due rows though it did not use its
	// share: another owner has got a row of it. At least one row was leased then.
	More  bool
	tried bool // it has rows that were attempted before
}

// Ready is a client with due rows.
type Ready struct {
	Client  string
	Repeats bool // some of the rows were attempted before
}

// Serve leases at most limit rows, of which at most repeats have been attempted before, to
// clients with due rows. take leases rows within the given shares and returns the leased counts
// in the same order. Serve repeats until the limit is reached or no rows are left.
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
			// A client that used its whole share may have more rows. In a round that leases
			// nothing, every client with a share drops out, so the loop ends.
			if taken[i].Rows == may.Rows || taken[i].More || may.tried && repeats > 0 && taken[i].Repeats == may.Repeats {
				ready = append(ready, Ready{may.Client, may.tried})
			}
		}
	}
	return nil
}

// deal splits limit and repeats into equal shares. Remainders go to the clients whose turn it is.
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
