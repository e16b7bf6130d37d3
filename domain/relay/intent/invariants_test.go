package intent

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// drawCommand draws a command on a small chain with two branches that part after block 3, so that
// every transition occurs often.
func drawCommand(t *rapid.T, s State) Command {
	at := epoch.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "at")) * time.Second)
	n := max(1, s.Assignment+rapid.IntRange(-1, 1).Draw(t, "assignment"))
	hash := rapid.IntRange(1, 4).Draw(t, "hash") + 10*n
	drawn := rapid.IntRange(0, 16).Draw(t, "command")
	if s.Place == nil && drawn > 3 && rapid.IntRange(0, 4).Draw(t, "goes on") > 0 {
		drawn = 1 // otherwise most lives would be short
	}
	switch drawn {
	case 0:
		return Create{Request: asked(func(r *Request) { r.Simulate = rapid.Bool().Draw(t, "another") }), At: at}
	case 1, 2:
		a := assign(n)
		a.Place.Nonce, a.Token = rapid.Uint64Range(1, 2).Draw(t, "nonce"), rapid.Uint64Range(1, 3).Draw(t, "token")
		return a
	case 3:
		r := requeue(n, rapid.SampledFrom([]EvidenceKind{Released, Rival, Lapsed, Filled}).Draw(t, "evidence"))
		if len(s.Attempts) > 0 && (r.Evidence.Kind == Filled || rapid.IntRange(0, 9).Draw(t, "own") == 0) {
			r.Evidence.Hash = s.Attempts[len(s.Attempts)-1].Hash
		}
		r.Token = rapid.Uint64Range(1, 3).Draw(t, "holder's")
		return r
	case 4, 5, 6:
		return attempt(n, hash, drawKind(t, s))
	case 7, 8, 9, 10:
		return drawSeen(t, s, hash)
	case 11:
		name := rapid.SampledFrom([]string{"main", "fork"}).Draw(t, "left")
		was := rapid.Uint64Range(2, 8).Draw(t, "was")
		return LoseBlock{drawnBlock(was, name), blockAt(was, "third"), at}
	case 12:
		return rapid.SampledFrom([]Command{Cancel{"owner", at}, Cancel{"owner", at}, Expire{asked().Deadline, at}, Expire{1, at}}).Draw(t, "stop")
	case 13:
		if rapid.Bool().Draw(t, "yield") {
			return Yield{rapid.IntRange(1, 3).Draw(t, "of"), "", at}
		}
		return SpeedUp{NewAmount(rapid.Uint64Range(0, 5).Draw(t, "fee")), at}
	}
	if drawn > 14 {
		return GiveWay{s.Assignment, "", at}
	}
	return Fail{rapid.SampledFrom([]Reason{Simulation, Refused}).Draw(t, "reason"), "no", at}
}

// drawKind mostly draws the kind that the state needs.
func drawKind(t *rapid.T, s State) AttemptKind {
	if s.ToNoOp() && rapid.IntRange(0, 3).Draw(t, "gives up") > 0 {
		return NoOp
	}
	return rapid.SampledFrom([]AttemptKind{First, Bump, Bump, NoOp}).Draw(t, "kind")
}

// drawnBlock returns a block of a branch; all branches share the first three blocks.
func drawnBlock(n uint64, name string) chain.Block {
	if n <= 3 {
		return blockAt(n, "main")
	}
	b := blockAt(n, name)
	if n == 4 {
		b.Parent = blockAt(3, "main").Hash
	}
	return b
}

func drawSeen(t *rapid.T, s State, hash int) Announce {
	name := rapid.SampledFrom([]string{"main", "fork"}).Draw(t, "branch")
	from := rapid.Uint64Range(2, 5).Draw(t, "from")
	var list []chain.Block
	for n := from; n <= from+rapid.Uint64Range(0, 3).Draw(t, "depth"); n++ {
		list = append(list, drawnBlock(n, name))
	}
	c := seen(hash, list, rapid.Uint64Range(0, 1).Draw(t, "status"), rapid.Bool().Draw(t, "settled"))
	if len(s.Attempts) > 0 && rapid.IntRange(0, 9).Draw(t, "known") > 0 {
		c.Hash = rapid.SampledFrom(s.Attempts).Draw(t, "attempt").Hash
	}
	return c
}

// history is an observer's model of the events, with checks independent of [State].
type history struct {
	sequence  uint64
	completed int // in force
	standing  bool
	byBlock   bool // the end in force has a block
	placed    bool
	signed    bool // at the place
	toEnd     bool
	givesWay  bool                // at the place
	kinds     map[chain.Hash]bool // attempts at the place; true for a no-op
	list      []chain.Block
	receipt   *chain.Receipt
	request   Requested
}

// Any sequence of commands keeps the numbered invariants of the package comment.
func TestInvariants(t *testing.T) {
	reached := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		var s State
		var h history
		var told []Notice
		codec := Codec()
		if rapid.IntRange(0, 9).Draw(t, "begun") > 0 {
			s = s.Evolve(requestedBy(create()))
			h.fact(t, s.Requested)
		}
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			c := drawCommand(t, s)
			events, err := s.Decide(c)
			if err != nil {
				if !errors.As(err, new(eventlog.Refusal)) || len(events) > 0 {
					t.Fatalf("%T: %v with %v", c, err, events)
				}
				continue
			}
			for _, e := range events {
				name, data, err := codec.Encode(e)
				if err != nil {
					t.Fatal(err)
				}
				back, err := codec.Decode(name, data)
				if err != nil || !cmp.Equal(e, back) {
					t.Fatalf("%s does not survive the log: %v\n%s", name, err, cmp.Diff(e, back))
				}
				h.fact(t, back)
				if r, is := c.(Requeue); is && r.Evidence.Kind == Released && r.Token < s.Token {
					t.Fatalf("invariant 2: the holder with token %d has given back what that of token %d goes on with", r.Token, s.Token)
				}
				s = s.Evolve(back)
				if n, ok := Tell(s.Requested.ID, back); ok {
					told = append(told, n)
				}
				reached[name]++
			}
			if again, err := s.Decide(c); len(again) > 0 || err != nil && !errors.Is(err, ErrSettled) && !errors.Is(err, ErrLive) && !errors.Is(err, ErrAssigned) && !errors.Is(err, ErrCanceling) {
				t.Fatalf("invariant 6: deciding %T twice added %v, %v", c, again, err)
			}
		}
		equalAsTold(t, s, told)
	})
	for _, name := range []string{"assigned", "attempted", "taken_over", "requeued", "give_way_requested", "announced", "completed", "reorged"} {
		if reached["intent."+name+".v1"] == 0 {
			t.Errorf("%s was never recorded: the test does not try it", name)
		}
	}
}

func requestedBy(c Create) Requested {
	return Requested{c.Request.ID(), c.Request.Digest(), c.Request, c.Origin, c.At}
}

// fact checks one more event.
func (h *history) fact(t *rapid.T, e Event) {
	if n := SequenceOf(e); n != 0 {
		if n != h.sequence+1 {
			t.Fatalf("invariant 5: sequence %d after %d", n, h.sequence)
		}
		h.sequence = n
	}
	_, announced := e.(Announced)
	_, reorged := e.(Reorged)
	if h.standing && !announced && !reorged {
		t.Fatalf("invariant 4: %T after the end", e)
	}
	switch e := e.(type) {
	case Requested:
		if h.request.ID != (chain.IntentID{}) {
			t.Fatal("invariant 1: requested again")
		}
		h.request = e
	case Assigned:
		if h.placed {
			t.Fatal("invariant 2: two places at a time")
		}
		h.placed, h.signed, h.givesWay, h.kinds = true, false, false, map[chain.Hash]bool{}
	case TakenOver:
		if !h.placed || h.signed {
			t.Fatal("a place was taken over that it has not, or that is signed for")
		}
	case Requeued:
		if !h.placed || h.signed && e.Evidence.Kind == Released || e.Evidence.Kind != Released && e.Evidence.Block.IsZero() || h.receipt != nil {
			t.Fatalf("invariant 2: requeued by %+v", e.Evidence)
		}
		noop, own := h.kinds[e.Evidence.Hash]
		if filled := e.Evidence.Kind == Filled; filled && (!noop || !h.givesWay || h.toEnd) || own && !filled {
			t.Fatalf("invariant 2: requeued by %+v, an attempt of its own", e.Evidence)
		}
		h.placed = false
	case CancelRequested:
		h.toEnd = true
	case YieldRequested:
		if !h.placed || h.signed {
			t.Fatal("a nonce is to be given back that it has not, or that is signed for")
		}
	case GiveWayRequested:
		if !h.placed || !h.signed || h.receipt != nil {
			t.Fatal("it is to give way where nothing is signed, or a block holds it")
		}
		h.givesWay = true
	case Attempted:
		if e.Kind == NoOp && !h.toEnd && !h.givesWay {
			t.Fatal("invariant 4: a no-op for what is to be done")
		}
		h.signed, h.kinds[e.Hash] = true, e.Kind == NoOp
	case Announced:
		h.announced(t, e)
	case Reorged:
		if !h.standing || !h.byBlock {
			t.Fatal("invariant 3: an end was taken back that there is not, or is for ever")
		}
		h.standing, h.completed = false, 0
	case Completed:
		h.completed++
		h.end(t, e.Block)
	case Failed:
		if e.Reason == "" {
			t.Fatal("it failed for no reason")
		}
		h.end(t, e.Block)
	case Canceled:
		h.end(t, e.Block)
	}
}

func (h *history) end(t *rapid.T, b chain.Block) {
	if h.standing || h.completed > 1 {
		t.Fatal("invariant 3: two ends")
	}
	h.standing, h.byBlock = true, !b.IsZero()
	if h.byBlock && (h.receipt == nil || h.receipt.Block != b) {
		t.Fatalf("it ends by block %d, which was not announced", b.Number)
	}
	if !h.byBlock && h.placed {
		t.Fatal("invariant 2: it ends for ever, and has a place where it may land")
	}
}

func (h *history) announced(t *rapid.T, e Announced) {
	if e.Kind == AboutReceipt {
		h.receipt = e.Receipt
		return
	}
	changed := len(e.Confirmations) < len(h.list) || !slices.Equal(h.list, e.Confirmations[:len(h.list)])
	extends := len(e.Confirmations) > 0 && (len(h.list) == 0 || e.Confirmations[0].Parent == h.list[len(h.list)-1].Hash)
	switch {
	case e.NewFork && (!changed || len(h.list) == 0):
		t.Fatalf("invariant 5: a new fork, but nothing announced before has changed: %v, %v", h.list, e.Confirmations)
	case !e.NewFork && !extends:
		t.Fatalf("invariant 5: no new fork, but %v does not continue %v", e.Confirmations, h.list)
	case e.NewFork:
		h.list = e.Confirmations
	default:
		h.list = append(slices.Clip(h.list), e.Confirmations...)
	}
	if h.receipt == nil && len(h.list) > 0 || h.receipt != nil && (len(h.list) == 0 || h.list[0].Hash != h.receipt.Block.Hash) {
		t.Fatalf("the list %v is not of the receipt %+v", h.list, h.receipt)
	}
}

// equalAsTold checks a consumer that receives notices in any order and repeatedly, applies them
// by sequence, and overwrites its list at a new fork.
func equalAsTold(t *rapid.T, s State, told []Notice) {
	bySequence := map[uint64]Notice{}
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, max(0, len(told)-1)), 0, 10).Draw(t, "redelivered") {
		if len(told) > 0 {
			told = append(told, told[i])
		}
	}
	for _, n := range rapid.Permutation(told).Draw(t, "arrived") {
		if before, twice := bySequence[n.Sequence]; twice && !cmp.Equal(before, n) {
			t.Fatalf("%s is told in two ways", n.ID())
		}
		bySequence[n.Sequence] = n
	}
	var receipt *chain.Receipt
	var list []chain.Block
	end := ""
	for i := uint64(1); i <= s.Sequence; i++ {
		n, came := bySequence[i]
		if !came {
			t.Fatalf("sequence %d was never told", i)
		}
		switch said := n.Said.(type) {
		case TxReceiptUpdated:
			receipt, end = said.Receipt, ""
		case TxConfirmed:
			if said.NewFork {
				list = nil
			}
			list = append(list, said.Confirmations...)
			if said.Done {
				end = "done"
			}
		case TxFailed:
			end = string(said.Reason)
		}
	}
	want := ""
	if s.End != nil {
		want = map[Status]string{StatusCompleted: "done", StatusCanceled: string(Withdrawn), StatusFailed: string(s.End.Reason)}[s.End.Status]
	}
	if !cmp.Equal(receipt, s.Receipt) || !slices.Equal(list, s.Told) || end != want {
		t.Fatalf("a consumer ends with %+v, %v, %q; the truth is %+v, %v, %q", receipt, list, end, s.Receipt, s.Told, want)
	}
}

func Example() {
	main := branch("main", 7, 8)
	var s State
	for _, c := range []Command{create(), assign(1), attempt(1, 1, First), seen(1, main, 1, true)} {
		events, err := s.Decide(c)
		if err != nil {
			fmt.Println(err)
		}
		for _, e := range events {
			s = s.Evolve(e)
			if n, told := Tell(s.Requested.ID, e); told {
				fmt.Printf("%d %T\n", n.Sequence, n.Said)
			}
		}
	}
	fmt.Println(s.Status())
	// Output:
	// 1 intent.TxAccepted
	// 2 intent.TxSubmitted
	// 3 intent.TxReceiptUpdated
	// 4 intent.TxConfirmed
	// 5 intent.TxConfirmed
	// completed
}
