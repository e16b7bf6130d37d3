package promises_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

const testChain chain.ID = 42431

var epoch = time.Unix(1_800_000_000, 0).UTC()

// script writes a history fact by fact, and judges each fact.
type script struct {
	judge    *promises.Judge
	ledger   *promises.Ledger
	versions map[eventlog.Stream]eventlog.Version
	at       time.Time
	position eventlog.Position
	ids      uint64
	found    []promises.Violation
	// change is applied to each event before it is judged; nil: no change.
	change func(r *eventlog.Recorded)
	// tie, if set, makes the script link events, and may alter them afterwards.
	tie   func(r *eventlog.Recorded)
	links map[eventlog.Stream]eventlog.Link
}

func newScript(s promises.Settings) *script {
	ledger := promises.NewLedger()
	s.Chain = func(chain.ID) promises.Chain { return ledger }
	s.Decode = decode
	return &script{judge: promises.New(s), ledger: ledger, versions: map[eventlog.Stream]eventlog.Version{}, links: map[eventlog.Stream]eventlog.Link{}, at: epoch}
}

// note holds the fields of a test transaction's bytes.
type note struct {
	name   string
	sender byte
	key    byte
	nonce  uint64
	before uint64 // seconds after the epoch; 0: never
	after  uint64
}

// raw returns bytes that decode can read.
func (n note) raw() []byte {
	raw := append([]byte{n.sender, n.key}, make([]byte, 24)...)
	binary.BigEndian.PutUint64(raw[2:], n.nonce)
	binary.BigEndian.PutUint64(raw[10:], n.before)
	binary.BigEndian.PutUint64(raw[18:], n.after)
	return append(raw, n.name...)
}

func (n note) hash() chain.Hash { return chain.Keccak(n.raw()) }

func (n note) nonceKey() chain.NonceKey { return chain.NonceKey{31: n.key} }

func (n note) sequence() chain.Sequence {
	return chain.Sequence{Chain: testChain, Sender: chain.Address{n.sender}, Key: n.nonceKey()}
}

func (n note) accepted(at time.Time) tx.Accepted {
	a := tx.Accepted{
		Chain: testChain, Hash: n.hash(), Sender: chain.Address{n.sender}, Signature: chain.Secp256k1,
		NonceKey: n.nonceKey(), Nonce: n.nonce, EligibleAt: uint64(at.Unix()),
		Bytes: len(n.raw()), RawHash: n.hash(), At: at,
	}
	if n.before != 0 {
		a.Window.Before = uint64(epoch.Unix()) + n.before
	}
	if n.after != 0 {
		a.Window.After = uint64(epoch.Unix()) + n.after
		a.EligibleAt = a.Window.After
	}
	return a
}

// decode decodes the bytes of raw.
func decode(raw []byte) (chain.Signed, error) {
	if len(raw) < 26 {
		return chain.Signed{}, fmt.Errorf("%d bytes are no transaction", len(raw))
	}
	n := note{
		string(raw[26:]), raw[0], raw[1], binary.BigEndian.Uint64(raw[2:]),
		binary.BigEndian.Uint64(raw[10:]), binary.BigEndian.Uint64(raw[18:]),
	}
	a := n.accepted(epoch)
	return chain.Signed{
		Chain: a.Chain, Hash: chain.Keccak(raw), Sender: a.Sender, Signature: a.Signature,
		NonceKey: a.NonceKey, Nonce: a.Nonce, Window: a.Window,
	}, nil
}

// later advances the time.
func (s *script) later(d time.Duration) { s.at = s.at.Add(d) }

// log records events of a transaction.
func (s *script) log(n note, facts ...tx.Event) {
	for _, e := range facts {
		name, data, err := tx.Codec().Encode(e)
		if err != nil {
			panic(err)
		}
		s.record(tx.Stream(testChain, n.hash()), name, data)
	}
}

// logGroup records events of a group.
func (s *script) logGroup(id group.ID, facts ...group.Event) {
	for _, e := range facts {
		name, data, err := group.Codec().Encode(e)
		if err != nil {
			panic(err)
		}
		s.record(id.Stream(), name, data)
	}
}

func (s *script) record(stream eventlog.Stream, name string, data []byte) {
	s.position++
	s.ids++
	s.versions[stream]++
	r := eventlog.Recorded{
		Event:  eventlog.Event{ID: eventlog.DeriveID(stream, eventlog.ID{15: byte(s.ids), 14: byte(s.ids >> 8)}, 0), Name: name, Data: data},
		Stream: stream, Version: s.versions[stream], Position: s.position, At: s.at,
	}
	if s.change != nil {
		s.change(&r)
	}
	if s.tie != nil {
		s.links[stream] = s.links[stream].Next(stream, r.Version, r.Event)
		r.Meta.Link = s.links[stream]
		s.tie(&r)
	}
	s.found = append(s.found, s.judge.Event(r)...)
}

// accept accepts a transaction.
func (s *script) accept(n note) { s.log(n, n.accepted(s.at)) }

// send makes a transaction's bytes reach a node.
func (s *script) send(n note) { s.sendRaw(n.raw()) }

func (s *script) sendRaw(raw []byte) {
	s.found = append(s.found, s.judge.Sent(promises.Sent{Chain: testChain, Node: "a", Raw: raw, At: s.at, ChainTime: s.ledger.Head().Time})...)
}

// took sends a transaction and records that the node accepted it.
func (s *script) took(n note, attempt int) {
	s.send(n)
	s.log(n, tx.Broadcast{Attempt: attempt, Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken}}, At: s.at})
}

// blockOf returns a block of a branch.
func blockOf(number uint64, branch string) chain.Block {
	return chain.Block{
		Number: number, Hash: chain.Keccak(fmt.Append(nil, branch, number)),
		Parent: chain.Keccak(fmt.Append(nil, branch, number-1)), Time: uint64(epoch.Unix()) + number,
	}
}

// mine adds a block that executes transactions.
func (s *script) mine(b chain.Block, notes ...note) {
	executed := make([]promises.Execution, len(notes))
	for i, n := range notes {
		executed[i] = promises.Execution{Hash: n.hash(), Status: 1, Sequence: n.sequence(), Nonce: n.nonce}
	}
	s.ledger.Add(b, executed...)
}

func minedIn(b chain.Block) tx.Mined { return tx.Mined{Receipt: chain.Receipt{Block: b, Status: 1}} }

func (s *script) call(c promises.Call) {
	c.Chain = testChain
	if c.Ended.IsZero() {
		c.Ended = s.at
	}
	if c.Began.IsZero() {
		c.Began = c.Ended
	}
	s.found = append(s.found, s.judge.Call(c)...)
}

func (s *script) submitted(n note) {
	s.call(promises.Call{Kind: promises.Submit, Hash: n.hash(), Result: promises.OK})
}

func (s *script) finish(e promises.End) {
	if e.Now.IsZero() {
		e.Now = s.at
	}
	s.found = append(s.found, s.judge.Finish(e)...)
}

func (s *script) tick(up bool) { s.found = append(s.found, s.judge.Tick(s.at, up)...) }

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
