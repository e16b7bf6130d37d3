package messages_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands/relay/messages"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	idempotency "github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// request returns a request, as large as requests may be if it is so asked.
func request(key string, largest bool, urls ...string) intent.Request {
	r := intent.Request{Client: "shop", Key: key, From: intent.From{Pool: "hot"}, Chain: 1, Calls: []intent.Call{{To: &chain.Address{9}, Data: intent.Data{1, 2}}}}
	for _, u := range urls {
		r.Webhooks = append(r.Webhooks, intent.Webhook{URL: u})
	}
	if !largest {
		return r
	}
	r.Key, r.Order = strings.Repeat("k", idempotency.KeyMax), strings.Repeat("o", intent.OrderMax)
	r.Client, r.Pool = strings.Repeat("c", intent.NameMax), strings.Repeat("p", intent.NameMax)
	r.Subject, r.Deadline, r.NotBefore = strings.Repeat("<", intent.SubjectMax), 200_000_000_000, 200_000_000
	most, _ := intent.ParseAmount("115792089237316195423570985008687907853269984665640564039457584007913129639935")
	r.Calls = nil
	for range intent.CallsMax {
		r.Calls = append(r.Calls, intent.Call{To: &chain.Address{9}, Value: most, Data: make(intent.Data, intent.MessageDataMost/intent.CallsMax)})
	}
	r.Metadata = map[string]string{}
	for i := range intent.EntriesMax {
		r.Metadata[fmt.Sprintf("n%02d", i)] = strings.Repeat("<", intent.MetadataMax/intent.EntriesMax-3) // six bytes each, in JSON
	}
	return r
}

// history records the life of intents with and without webhooks, mixed, and returns its events.
func history(t *testing.T, db *embedded.DB, requests ...intent.Request) (all []eventlog.Recorded) {
	t.Helper()
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	list := func(fork string, n uint64) (blocks []chain.Block) {
		parent := chain.Hash{}
		for i := range n {
			b := chain.Block{Number: 7 + i, Hash: chain.Keccak(fmt.Append(nil, fork, i)), Parent: parent, Time: 100 + i}
			blocks, parent = append(blocks, b), b.Hash
		}
		return blocks
	}
	states := map[chain.IntentID]intent.State{}
	do := func(r intent.Request, commands ...intent.Command) {
		for _, c := range commands {
			s := states[r.ID()]
			events, err := s.Decide(c)
			must(t, err)
			stream := intent.Stream(r.ID())
			version := eventlog.Version(0)
			for e, err := range db.Log().ReadStream(t.Context(), stream, 0) {
				must(t, err)
				version = e.Version
			}
			var encoded []eventlog.Event
			for i, e := range events {
				name, data, err := intent.Codec().Encode(e)
				must(t, err)
				encoded = append(encoded, eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{byte(version)}, i), Name: name, Data: data})
				s = s.Evolve(e)
			}
			_, err = db.Log().Append(t.Context(), stream, version, encoded...)
			must(t, err)
			states[r.ID()] = s
		}
	}
	hash, bumped := chain.Keccak([]byte("1")), chain.Keccak([]byte("2"))
	first, second := list("a", 2), list("b", 3)
	steps := []intent.Command{
		intent.Assign{Assignment: 1, Place: intent.Place{Signer: chain.Address{1}, Nonce: 9}, Token: 1, At: at},
		intent.Attempt{Assignment: 1, Kind: intent.First, Hash: hash, At: at},
		intent.Attempt{Assignment: 1, Kind: intent.Bump, Hash: bumped, At: at},
		intent.Announce{Hash: hash, Receipt: chain.Receipt{Block: first[0], Status: 1}, Confirmations: first, At: at},
		intent.Announce{Hash: bumped, Receipt: chain.Receipt{Block: second[0], Status: 1, GasUsed: 7}, Confirmations: second, Settled: true, At: at},
	}
	for _, r := range requests {
		must(t, r.Check())
		do(r, intent.Create{Request: r, At: at})
	}
	for _, step := range steps {
		for _, r := range requests {
			do(r, step)
		}
	}
	for batch, err := range db.Log().ReadAll(t.Context(), 0, eventlog.Filter{Streams: []string{intent.StreamPrefix}}, 1000) {
		must(t, err)
		all = append(all, batch.Events...)
	}
	return all
}

// A delivery's body follows from the log alone: after a restart at any point it is the same, byte
// by byte. Each endpoint gets each public event once, in order, with the request and the state.
func TestBodiesAreTheSameAfterARestart(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	urls := []string{"https://a.example.com/", "https://b.example.com/"}
	events := history(t, db, request("one", false, urls...), request("silent", false), request("two", false, urls[0]))
	running := messages.New(db.Log(), 100)
	got := map[notice.EndpointID]map[chain.IntentID][]string{}
	for _, r := range events {
		news, err := running.News(ctx, r)
		must(t, err)
		again, err := messages.New(db.Log(), 100).News(ctx, r)
		must(t, err)
		if d := cmp.Diff(news, again); d != "" {
			t.Errorf("after a restart at position %d: %s", r.Position, d)
		}
		for _, n := range news {
			if n.Seq == 0 {
				continue
			}
			var m intent.Message
			must(t, json.Unmarshal(n.Body, &m))
			if m.ID() != n.MessageID() || m.Request.Client != "shop" || m.Request.Key == "" || n.Client != "shop" || len(m.Request.Calls) != 1 || m.State.Status == "" {
				t.Errorf("%s", n.Body)
			}
			if got[n.Endpoint] == nil {
				got[n.Endpoint] = map[chain.IntentID][]string{}
			}
			line := fmt.Sprint(m.Sequence, " ", m.Type(), " ", m.State.Status, " ", m.State.Confirmations)
			if m.State.Receipt != nil {
				line += fmt.Sprint(" in ", m.State.Receipt.Block.Number, " by ", m.State.Hash == chain.Keccak([]byte("2")))
			}
			got[n.Endpoint][n.Intent] = append(got[n.Endpoint][n.Intent], line)
		}
	}
	life := []string{
		"1 TxAccepted assigned 0", "2 TxSubmitted submitted 0", "3 TxReplaced submitted 0",
		"4 TxReceiptUpdated mined 0 in 7 by false", "5 TxConfirmed mined 2 in 7 by false",
		"6 TxReceiptUpdated mined 2 in 7 by true", "7 TxConfirmed mined 3 in 7 by true", "8 TxConfirmed completed 3 in 7 by true",
	}
	one, two := request("one", false).ID(), request("two", false).ID()
	want := map[notice.EndpointID]map[chain.IntentID][]string{
		notice.EndpointOf("shop", urls[0]): {one: life, two: life},
		notice.EndpointOf("shop", urls[1]): {one: life},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The largest request fits into a webhook, whatever the setting.
func TestTheLargestBodyFits(t *testing.T) {
	for _, data := range []int{0, intent.MessageDataStandard, intent.MessageDataMost} {
		db, err := embedded.Open("", embedded.Options{})
		must(t, err)
		largest := 0
		m := messages.New(db.Log(), data)
		for _, r := range history(t, db, request("", true, "https://a.example.com/")) {
			news, err := m.News(t.Context(), r)
			must(t, err)
			for _, n := range news {
				largest = max(largest, len(n.Body))
			}
		}
		must(t, db.Close())
		// Confirmations and a receipt with all its logs need room too.
		if largest == 0 || largest > webhook.BodyMax-16<<10 {
			t.Errorf("with %d bytes of data a body has %d bytes", data, largest)
		}
		t.Logf("with %d bytes of data the largest body has %d bytes", data, largest)
	}
}

// side is a log whose reads of streams wait until several are in progress.
type side struct {
	states.Streams
	reads  atomic.Int64
	enough int64
	met    chan struct{}
}

func (s *side) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	if s.reads.Add(1) == s.enough {
		close(s.met)
	}
	select {
	case <-s.met:
	case <-ctx.Done():
	}
	return s.Streams.ReadStream(ctx, stream, after)
}

// A feeder that remembers none of the intents of a batch reads them side by side, each once, whether
// they have webhooks or not.
func TestIntentsAreReadSideBySide(t *testing.T) {
	db, err := embedded.Open("", embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var requests []intent.Request
	for i := range 20 {
		r := request(fmt.Sprint(i), false)
		if i%2 == 0 {
			r = request(fmt.Sprint(i), false, "https://a.example.com/")
		}
		requests = append(requests, r)
	}
	later := history(t, db, requests...)[len(requests):]
	log := &side{Streams: db.Log(), enough: 8, met: make(chan struct{})}
	m := messages.New(log, 100)
	m.Ahead(ctx, later)
	must(t, ctx.Err())
	news := 0
	for _, r := range later {
		all, err := m.News(ctx, r)
		must(t, err)
		news += len(all)
	}
	if n := log.reads.Load(); n != int64(len(requests)) || news == 0 {
		t.Errorf("%d intents were read %d times; %d deliveries", len(requests), n, news)
	}
	m.Ahead(ctx, later[len(later)-1:])
	if n := log.reads.Load(); n != int64(len(requests)) {
		t.Errorf("remembered intents were read: %d reads", n)
	}
}
