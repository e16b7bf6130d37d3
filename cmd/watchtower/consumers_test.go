package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/consumer"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A command about a parked stream names one version: a skip meant for an event that the stream
// has since passed does nothing.
func TestConsumersGoOn(t *testing.T) {
	dir := accepted(t, chain.Hash{7})
	f, err := embedded.OpenFeed(dir, embedded.FeedOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	const group, stream = "ledger/all", "tx-1"
	c, held, err := f.Groups().Claim(t.Context(), group, "a", time.Minute)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	park := func(p consumer.Parked) {
		t.Helper()
		p.Stream, p.Error, p.Attempts = stream, "no", 1
		must(t, f.Groups().Park(t.Context(), group, c.Token, p))
	}
	expect := func(says string, fails bool, wish consumer.Wish, args ...string) {
		t.Helper()
		var out, log bytes.Buffer
		cmd := command(strings.NewReader(""), &out, &log)
		cmd.SetArgs(append(append([]string{"consumers"}, args...), "--store", "embedded:"+dir))
		err := cmd.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if (err != nil) != fails || !strings.Contains(out.String(), says) {
			t.Errorf("%v says %q, want %q", args, out.String(), says)
		}
		parked, err := f.Groups().Parked(t.Context(), group)
		if err != nil || len(parked) > 0 && parked[0].Wish != wish {
			t.Errorf("after %v: %+v, %v", args, parked, err)
		}
	}
	expect("tx-1 of ledger/all is not parked", true, consumer.Wait, "skip", group, stream, "3")
	park(consumer.Parked{Version: 3, Position: 30})
	expect("tx-1 of ledger/all: retry version 3, at position 30\n", false, consumer.Retry, "retry", group, stream)
	park(consumer.Parked{Version: 4, Position: 40})
	expect("is parked at version 4, not at 3", true, consumer.Wait, "skip", group, stream, "3")
	expect("tx-1 of ledger/all: skip version 4, at position 40\n", false, consumer.Skip, "skip", group, stream, "4")
	expect("there is no group", true, consumer.Skip, "parked", "ledger")
	expect("tx-1", false, consumer.Skip, "parked", group)
}
