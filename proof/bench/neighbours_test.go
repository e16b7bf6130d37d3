package main

import (
	"bytes"
	"strings"
	"testing"
)

// Nine clients pay beside a tenth that pays, and beside a tenth that floods the service. Times
// are not judged here, with so few payments and other tests running.
func TestNeighbours(t *testing.T) {
	if (options{}).wants(sectionNeighbours) {
		t.Error("the neighbours are measured unasked")
	}
	onEach(t, func(t *testing.T, engine string) {
		for _, name := range []string{"watchtower", "relayer"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := measure(t, options{engines: []string{engine}, only: []string{sectionNeighbours}, trial: name})
				if len(b.besides) != 2 || b.besides[0].Flooded || !b.besides[1].Flooded {
					t.Fatalf("other runs than a well-behaved and a misbehaving tenth: %+v", b.besides)
				}
				for _, r := range b.besides {
					if err := r.wrong(); err != nil {
						t.Error(err)
					}
					if r.Payments != 15 || r.Accept[0] == 0 || r.ToMined[1] < r.ToMined[0] || r.ToTold[0] == 0 {
						t.Errorf("not all was measured: %+v", r)
					}
				}
				if f := b.besides[1].Flood; f.Sent == 0 || f.Taken == 0 || f.Statuses["200"] == 0 || len(f.Kinds) < 10 {
					t.Errorf("no flood: %s", f)
				}
			})
		}
	})
}

// An error of a well-behaved client fails the program, and so does a p99 that a misbehaving
// neighbour more than doubles.
func TestWrongNeighboursAreNoticed(t *testing.T) {
	runs := func(calm, flooded float64) *bench {
		b := &bench{sheet: newSheet()}
		for _, r := range []beside{
			{Half: "relayer", Store: "store", ToMined: [3]float64{1, calm, calm}},
			{Half: "relayer", Store: "store", Flooded: true, ToMined: [3]float64{1, flooded, flooded}, Flood: &flood{Statuses: map[string]int{"429": 7}}},
		} {
			b.besides = append(b.besides, r)
			b.noteBeside(r)
		}
		return b
	}
	if err := runs(100, 200).wrongNeighbours(); err != nil {
		t.Errorf("twice as long: %v", err)
	}
	if err := runs(100, 201).wrongNeighbours(); err == nil || !strings.Contains(err.Error(), "relayer on store") {
		t.Errorf("more than twice as long: %v", err)
	}
	b := runs(100, 100)
	b.besides[0].Lost = 3
	if err := b.wrongNeighbours(); err == nil || !strings.Contains(err.Error(), "3 lost") {
		t.Errorf("lost payments: %v", err)
	}
	var text bytes.Buffer
	if err := b.printNeighbours(&text); err != nil || !strings.Contains(text.String(), "429: 7") {
		t.Errorf("%v: %s", err, &text)
	}
	text.Reset()
	if err := runs(100, 150).sheet.print(&text, machine{}); err != nil || !strings.Contains(text.String(), "≤ 200") {
		t.Errorf("%v: %s", err, &text)
	}
}
