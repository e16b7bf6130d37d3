package intents_test

import (
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/promises/intents"
)

// script writes a history fact by fact, and judges each fact.
type script struct {
	judge    *intents.Judge
	ledger   *promises.Ledger
	consumer *intents.Consumer
	found    []promises.Violation
	position eventlog.Position
	versions map[eventlog.Stream]eventlog.Version
}

func newScript() *script {
	return &script{
		judge: intents.New(), ledger: promises.NewLedger(), consumer: &intents.Consumer{Name: "a sink"},
		versions: map[eventlog.Stream]eventlog.Version{},
	}
}

// wish returns the n-th intent of these tests.
func wish(n int) intent.Request {
	return intent.Request{Key: fmt.Sprint("wish-", n), From: intent.From{Pool: "hot"}, Chain: 1, Calls: []intent.Call{{To: &chain.Address{9}}}}
}

func requested(n int) intent.Requested {
	r := wish(n)
	return intent.Requested{ID: r.ID(), Digest: r.Digest(), Request: r, At: epoch}
}

// log records events of an intent.
func (s *script) log(id chain.IntentID, facts ...intent.Event) {
	for _, e := range facts {
		name, data, err := intent.Codec().Encode(e)
		if err != nil {
			panic(err)
		}
		s.record(intent.Stream(id), name, data)
	}
}

func (s *script) record(stream eventlog.Stream, name string, data []byte) {
	s.position++
	s.versions[stream]++
	r := eventlog.Recorded{Event: eventlog.Event{Name: name, Data: data}, Stream: stream, Version: s.versions[stream], Position: s.position, At: epoch}
	s.found = append(s.found, s.judge.Event(r)...)
}

// told records events and delivers their notices to the consumer.
func (s *script) told(id chain.IntentID, facts ...intent.Event) {
	s.log(id, facts...)
	for _, e := range facts {
		if n, ok := intent.Tell(id, e); ok {
			s.found = append(s.found, s.consumer.Shown(n)...)
		}
	}
}

func (s *script) finish(quiet bool) {
	s.found = append(s.found, s.judge.Finish(func(chain.ID) promises.Chain { return s.ledger }, quiet)...)
}

func (s *script) delivered() {
	s.found = append(s.found, s.consumer.Finish(s.judge, func(chain.IntentID) bool { return true })...)
}

// expect checks that exactly one promise was broken; 0: none.
func (s *script) expect(t *testing.T, want promises.Number) {
	t.Helper()
	for _, v := range s.found {
		if v.Promise != want {
			t.Errorf("want %s, found %s", want, v)
		}
	}
	if want != 0 && len(s.found) == 0 {
		t.Errorf("nothing was found, want %s", want)
	}
}

func blockOf(n uint64, branch string) chain.Block {
	return chain.Block{Number: n, Hash: chain.Keccak(fmt.Append(nil, branch, n)), Parent: chain.Keccak(fmt.Append(nil, branch, n-1))}
}

func hashOf(n int) chain.Hash { return chain.Keccak(fmt.Append(nil, "attempt ", n)) }

func place(nonce uint64) intent.Place { return intent.Place{Signer: chain.Address{1}, Nonce: nonce} }

func assigned(sequence uint64, n int, nonce uint64) intent.Assigned {
	return intent.Assigned{Sequence: sequence, Assignment: n, Place: place(nonce), Token: 1, At: epoch}
}

func attempted(sequence uint64, n, hash int, kind intent.AttemptKind) intent.Attempted {
	return intent.Attempted{Sequence: sequence, Assignment: n, Attempt: 1, Kind: kind, Hash: hashOf(hash), At: epoch}
}

func receipt(sequence uint64, hash int, b *chain.Block, status uint64) intent.Announced {
	a := intent.Announced{Sequence: sequence, Kind: intent.AboutReceipt, Hash: hashOf(hash), At: epoch}
	if b != nil {
		a.Receipt = &chain.Receipt{Block: *b, Status: status}
	}
	return a
}

func confirmed(sequence uint64, hash int, newFork bool, list ...chain.Block) intent.Announced {
	return intent.Announced{Sequence: sequence, Kind: intent.AboutConfirmations, Hash: hashOf(hash), Confirmations: list, NewFork: newFork, At: epoch}
}

func completed(sequence uint64, hash int, b chain.Block) intent.Completed {
	return intent.Completed{Sequence: sequence, Hash: hashOf(hash), Block: b, At: epoch}
}

func requeued(sequence uint64, n int, e intent.Evidence) intent.Requeued {
	return intent.Requeued{Sequence: sequence, Assignment: n, Evidence: e, At: epoch}
}

type scenario struct {
	name   string
	breaks promises.Number // 0: none
	do     func(s *script)
}

func run(t *testing.T, scenarios []scenario) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			s := newScript()
			c.do(s)
			s.expect(t, c.breaks)
		})
	}
}
