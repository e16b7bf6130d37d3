package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/internal/rig"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// What others were put through, we come through, however small it is made.
func TestPeers(t *testing.T) {
	testenv.Need(t, testenv.AnvilVar)
	if (options{}).wants(sectionPeers) {
		t.Error("the trials are made unasked")
	}
	onEach(t, func(t *testing.T, engine string) {
		for _, made := range tiny().trials {
			if made.replicas > 0 && engine != postgresEngine {
				continue
			}
			t.Run(made.name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, options{engines: []string{engine}, only: []string{sectionPeers}})
				b.scale.trials = []trial{made}
				if err := b.all(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(b.shown) != 1 {
					t.Fatalf("%d trials were made", len(b.shown))
				}
				s := b.shown[0]
				if err := s.wrong(); err != nil {
					t.Error(err)
				}
				if s.Samples == 0 || s.Mined == 0 || s.Accepted == 0 || s.Calls < 1 {
					t.Errorf("not all was measured: %+v", s)
				}
			})
		}
	})
}

// A payment that is not there, and one that is there twice, are noticed; and the program
// fails for what went wrong.
func TestWrongIsNoticed(t *testing.T) {
	t.Parallel()
	anvil, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := anvil.Remove(); err != nil {
			t.Error(err)
		}
	}()
	if err := anvil.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := transfers(3, 1)
	for _, p := range all[:2] {
		if err := rig.Call(t.Context(), anvil.URL(), nil, "eth_sendRawTransactionSync", fmt.Sprintf("0x%x", p.Raw)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what         string
		wanted       []transfer
		accepted     bool
		lost, double int
	}{
		{"all is well", all[:2], true, 0, 0},
		{"one was not paid", all, true, 1, 0},
		{"one was not paid, and not accepted", all, false, 0, 0},
		{"a nonce too many was used", all[:1], true, 0, 1},
	} {
		lost, double, err := paid(t.Context(), anvil.URL(), c.wanted, 1, func(transfer) bool { return c.accepted })
		if err != nil || lost != c.lost || double != c.double {
			t.Errorf("%s: %d lost, %d double, %v", c.what, lost, double, err)
		}
	}

	s := shown{Run: "run", Store: "store", Lost: 4}
	if err := s.wrong(); err == nil || !strings.Contains(err.Error(), "4 lost") {
		t.Errorf("lost payments: %v", err)
	}
	if err := (shown{}).wrong(); err != nil {
		t.Error(err)
	}
	b := &bench{shown: []shown{s}}
	b.scale.trials = []trial{{name: "run", peers: []peer{{name: "another"}}}}
	var table bytes.Buffer
	if err := b.printPeers(&table); err != nil || !strings.Contains(table.String(), "4 / 0 / 0 / 0") || !strings.Contains(table.String(), "another") {
		t.Errorf("%v: %s", err, &table)
	}
}
