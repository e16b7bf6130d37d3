package budget

import (
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// BenchmarkReserve reserves a batch of 100, for 100 clients, on one of ten lanes with 300 in
// flight.
func BenchmarkReserve(b *testing.B) {
	s := State{Limits: map[Account]Limit{whole: {Fee: amount(1 << 62)}, {Kind: EachClient}: {Fee: amount(1 << 60)}}}
	charges := func(lane, from, n int) (Lane, []Charge) {
		all := make([]Charge, n)
		for i := range all {
			all[i] = Charge{Purpose{Intent: chain.IntentID{1, byte(lane), byte((from + i) >> 8), byte(from + i)}}, fmt.Sprint("client", i), "", fees(1000)}
		}
		return Lane{Signer: chain.Address{byte(lane)}}, all
	}
	for lane := range 10 {
		for from := 0; from < 300; from += 100 {
			l, all := charges(lane, from, 100)
			events, err := s.Decide(Reserve{today, l, 1, all, epoch})
			if err != nil {
				b.Fatal(err)
			}
			s = s.Evolve(events[0])
		}
	}
	l, all := charges(3, 300, 100)
	b.ReportAllocs()
	for b.Loop() {
		events, err := s.Decide(Reserve{today, l, 1, all, epoch})
		if err != nil || len(events) != 1 {
			b.Fatal(events, err)
		}
		s.Evolve(events[0])
	}
}
