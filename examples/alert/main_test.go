package main

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAlert(t *testing.T) {
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	codec, stream := tx.Codec(), tx.Stream(1, chain.Hash{1})
	for version, e := range []tx.Event{
		tx.Accepted{}, tx.Rejected{Reason: "later"}, tx.Mined{Receipt: chain.Receipt{Block: chain.Block{Number: 7}}}, tx.Reorged{Was: chain.Block{Number: 7}},
		tx.Mined{Receipt: chain.Receipt{Status: 1}}, tx.Rejected{Reason: "no such fee token", Permanent: true}, tx.Expired{}, tx.StaleByNonce{Current: 9},
		tx.Finalized{}, tx.FinalityViolated{Was: chain.Block{Number: 8}},
	} {
		name, data, err := codec.Encode(e)
		must(t, err)
		_, err = db.Log().Append(t.Context(), stream, eventlog.Version(version), eventlog.Event{ID: eventlog.ID{byte(version)}, Name: name, Data: data})
		must(t, err)
	}

	lines, to := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, examples.Store{At: dir}, to, feed.Options{Group: "alert"}) }()
	scanner := bufio.NewScanner(lines)
	for _, want := range []string{
		"reverted in block 7", "withdrawn: block 7 was replaced", "refused permanently: no such fee token", "expired",
		"another transaction used its nonce; the chain's next nonce is 9", "final verdict contradicted: block 8 was replaced",
	} {
		if !scanner.Scan() || !regexp.MustCompile(`^\S+Z `+string(stream)+" "+want+"$").Match(scanner.Bytes()) {
			t.Fatalf("%s, want %s", scanner.Text(), want)
		}
	}
	cancel()
	must(t, <-ended)
}
