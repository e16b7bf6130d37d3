package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// The watchtower and the relayer pass the peers' trials, at a small scale.
func TestTrials(t *testing.T) {
	testenv.Need(t, testenv.AnvilVar)
	onEach(t, func(t *testing.T, engine string) {
		for _, section := range []string{sectionPeers, sectionRelay} {
			if (options{}).wants(section) {
				t.Errorf("the trials of %s are made unasked", section)
			}
			for _, made := range tiny().trials[section] {
				if made.shared() && engine != postgresEngine {
					continue
				}
				t.Run(section+" "+made.name, func(t *testing.T) {
					t.Parallel()
					comesThrough(t, engine, section, made)
				})
			}
		}
	})
}

func comesThrough(t *testing.T, engine, section string, made trial) {
	b := newBench(t, options{engines: []string{engine}, only: []string{section}})
	b.scale.trials = map[string][]trial{section: {made}}
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
	if s.Samples == 0 || s.Mined == 0 || s.Accepted == 0 || s.Calls < 1 || (made.kill > 0) != (s.Back > 0) {
		t.Errorf("not all was measured: %+v", s)
	}
}

// Missing and duplicate payments are noticed, and fail the program.
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
		what     string
		wanted   []transfer
		accepted bool
		want     bill
	}{
		{"all is well", all[:2], true, bill{}},
		{"one was not paid", all, true, bill{lost: 1}},
		{"one was not paid, and not accepted", all, false, bill{}},
		{"a nonce too many was used", all[:1], true, bill{spare: 1}},
	} {
		got, err := paid(t.Context(), anvil.URL(), c.wanted, 1, func(transfer) bool { return c.accepted })
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.what, got, err)
		}
	}
	again := wallet.Ethereum{
		Chain: plainChain, MaxPriorityFee: 1e9, MaxFee: 1e11, Gas: transferGas, Nonce: 2,
		Call: chain.Call{To: &all[0].to, Value: uint256.NewInt(1)},
	}.Sign(wallet.Dev(0))
	if err := rig.Call(t.Context(), anvil.URL(), nil, "eth_sendRawTransactionSync", fmt.Sprintf("0x%x", again)); err != nil {
		t.Fatal(err)
	}
	if got, err := paid(t.Context(), anvil.URL(), all[:2], 1, func(transfer) bool { return true }); err != nil || got != (bill{double: 1}) {
		t.Errorf("one was paid twice: %+v, %v", got, err)
	}

	s := shown{Section: sectionRelay, Run: "run", Store: "store", Lost: 4}
	if err := s.wrong(); err == nil || !strings.Contains(err.Error(), "4 lost") {
		t.Errorf("lost payments: %v", err)
	}
	if err := (shown{}).wrong(); err != nil {
		t.Error(err)
	}
	b := &bench{shown: []shown{s}}
	b.scale.trials = map[string][]trial{sectionRelay: {{name: "run", peers: []peer{{name: "another"}}}}}
	var table bytes.Buffer
	if err := b.printTrials(&table); err != nil || !strings.Contains(table.String(), "4 / 0 / 0 / 0") || !strings.Contains(table.String(), "another") {
		t.Errorf("%v: %s", err, &table)
	}
}
