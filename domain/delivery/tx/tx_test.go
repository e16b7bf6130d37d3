package tx

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

var (
	epoch = time.Unix(1_800_000_000, 0).UTC()
	taken = []Answer{{Endpoint: "a", Class: Taken}}
	busy  = []Answer{{Endpoint: "a", Class: Retry, Cause: PoolFull, Message: "txpool is full"}}
	lost  = []Answer{{Endpoint: "a", Class: Unknown, Cause: Unreachable, Message: "connection reset"}}
	never = []Answer{{Endpoint: "a", Class: Permanent, Message: "intrinsic gas too low"}}
)

func blockAt(n uint64, fork string) chain.Block {
	return chain.Block{
		Number: n, Hash: chain.Keccak(fmt.Append(nil, fork, n)), Parent: chain.Keccak(fmt.Append(nil, fork, n-1)),
		Time: uint64(epoch.Unix()) + n,
	}
}

func accept(mod ...func(*Accepted)) Accept {
	a := Accepted{Chain: 1, Hash: chain.Keccak([]byte("t")), Nonce: 5, EligibleAt: uint64(epoch.Unix()), At: epoch}
	for _, m := range mod {
		m(&a)
	}
	return Accept{a}
}

func receiptIn(b chain.Block) SeeReceipt {
	return SeeReceipt{Receipt: chain.Receipt{Block: b, Status: 1}, At: epoch}
}

// run decides and applies the commands in order.
func run(t *testing.T, s State, commands ...Command) (State, []Event) {
	t.Helper()
	var all []Event
	for _, c := range commands {
		events, err := s.Decide(c)
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		for _, e := range events {
			s = s.Evolve(e)
		}
		all = append(all, events...)
	}
	return s, all
}

func TestLife(t *testing.T) {
	b7, r7, b8 := blockAt(7, "main"), blockAt(7, "fork"), blockAt(8, "main")
	windowed := accept(func(a *Accepted) { a.Window.Before = b8.Time })
	cases := []struct {
		name   string
		given  []Command
		status Status
		sealed bool
		last   string // type of the last event
	}{
		{"accepted", []Command{accept()}, StatusQueued, false, "tx.Accepted"},
		{"taken", []Command{accept(), Report{1, taken, true, epoch}}, StatusBroadcasting, false, "tx.Broadcast"},
		{"refused for now", []Command{accept(), Report{1, busy, true, epoch}}, StatusRetry, false, "tx.Rejected"},
		{"lost reply is no failure", []Command{accept(), Report{1, lost, true, epoch}}, StatusRetry, false, "tx.Rejected"},
		{"never, says everybody", []Command{accept(), Report{1, never, true, epoch}}, StatusInvalid, false, "tx.Rejected"},
		{"never, says everybody after one has taken it", []Command{accept(), Report{1, taken, false, epoch}, Report{2, never, true, epoch}}, StatusRetry, false, "tx.Rejected"},
		{"never, says everybody after a lost reply", []Command{accept(), Report{1, lost, true, epoch}, Report{2, never, true, epoch}}, StatusInvalid, false, "tx.Rejected"},
		{"invalid, and mined all the same", []Command{accept(), Report{1, lost, true, epoch}, Report{2, never, true, epoch}, receiptIn(b7)}, StatusExecuted, false, "tx.Mined"},
		{"invalid stays invalid when stale", []Command{accept(), Report{1, lost, true, epoch}, Report{2, never, true, epoch}, SeeNonce{b7, 6, epoch}, Finalize{Final: b8, At: epoch}}, StatusInvalid, true, "tx.Finalized"},
		{"invalid stays invalid when expired", []Command{windowed, Report{1, never, true, epoch}, SeeTime{b8, epoch}}, StatusInvalid, false, "tx.Expired"},
		{"invalid and un-mined is not sent again", []Command{accept(), Report{1, lost, true, epoch}, Report{2, never, true, epoch}, receiptIn(b7), LoseBlock{b7, r7, epoch}}, StatusInvalid, false, "tx.Reorged"},
		{"never, says one of many", []Command{accept(), Report{1, never, false, epoch}}, StatusRetry, false, "tx.Rejected"},
		{"mined", []Command{accept(), receiptIn(b7)}, StatusExecuted, false, "tx.Mined"},
		{"mined and final", []Command{accept(), receiptIn(b7), Finalize{Final: b8, At: epoch}}, StatusExecuted, true, "tx.Finalized"},
		{"not final yet", []Command{accept(), receiptIn(b8), Finalize{Final: b7, At: epoch}}, StatusExecuted, false, "tx.Mined"},
		{"un-mined", []Command{accept(), receiptIn(b7), LoseBlock{b7, r7, epoch}}, StatusBroadcasting, false, "tx.Reorged"},
		{"moved to another block", []Command{accept(), receiptIn(b7), receiptIn(r7)}, StatusExecuted, false, "tx.Mined"},
		{"a block that is not ours left", []Command{accept(), receiptIn(b7), LoseBlock{r7, b7, epoch}}, StatusExecuted, false, "tx.Mined"},
		{"stale", []Command{accept(), SeeNonce{b7, 6, epoch}}, StatusStale, false, "tx.StaleByNonce"},
		{"stale, then mined after all", []Command{accept(), SeeNonce{b7, 6, epoch}, receiptIn(b7)}, StatusExecuted, false, "tx.Mined"},
		{"stale on a block that left", []Command{accept(), SeeNonce{b7, 6, epoch}, LoseBlock{b7, r7, epoch}}, StatusBroadcasting, false, "tx.Reorged"},
		{"expired", []Command{windowed, SeeTime{b8, epoch}}, StatusExpired, false, "tx.Expired"},
		{"expired and final", []Command{windowed, SeeTime{b8, epoch}, Finalize{Final: b8, At: epoch}}, StatusExpired, true, "tx.Finalized"},
		{"canceled", []Command{accept(), Cancel{"owner", epoch}}, StatusCanceled, false, "tx.CanceledLocally"},
		{"canceled but mined", []Command{accept(), Cancel{"owner", epoch}, receiptIn(b7)}, StatusExecuted, false, "tx.Mined"},
		{"canceled, mined, un-mined", []Command{accept(), Cancel{"owner", epoch}, receiptIn(b7), LoseBlock{b7, r7, epoch}}, StatusCanceled, false, "tx.Reorged"},
		{"canceled when announced as executed", []Command{accept(), receiptIn(b7), Cancel{"owner", epoch}}, StatusExecuted, false, "tx.CanceledLocally"},
		{"canceled when announced, un-mined", []Command{accept(), receiptIn(b7), Cancel{"owner", epoch}, LoseBlock{b7, r7, epoch}}, StatusCanceled, false, "tx.Reorged"},
		{"canceled when announced, sealed", []Command{accept(), receiptIn(b7), Cancel{"owner", epoch}, Finalize{Final: b7, At: epoch}}, StatusExecuted, true, "tx.Finalized"},
		{"canceled stays canceled when stale", []Command{accept(), Cancel{"owner", epoch}, SeeNonce{b7, 6, epoch}}, StatusCanceled, false, "tx.StaleByNonce"},
		{"canceled while a node may have it", []Command{accept(), Cancel{"owner", epoch}, Report{1, lost, true, epoch}}, StatusCanceled, false, "tx.Rejected"},
		{"late report", []Command{accept(), receiptIn(b7), Report{1, taken, true, epoch}}, StatusExecuted, false, "tx.Mined"},
		{"sealed with another status than was announced", []Command{accept(), receiptIn(b7), Finalize{Final: b8, Receipt: &chain.Receipt{Block: b7, Status: 0}, At: epoch}}, StatusExecuted, true, "tx.Finalized"},
		{"the chain breaks its word", []Command{accept(), receiptIn(b7), Finalize{Final: b8, At: epoch}, LoseBlock{b7, r7, epoch}}, StatusExecuted, true, "tx.FinalityViolated"},
		{"frozen after that", []Command{accept(), receiptIn(b7), Finalize{Final: b8, At: epoch}, LoseBlock{b7, r7, epoch}, receiptIn(r7)}, StatusExecuted, true, "tx.FinalityViolated"},
		{"sealed stale, then mined", []Command{accept(), SeeNonce{b7, 6, epoch}, Finalize{Final: b8, At: epoch}, receiptIn(b8)}, StatusStale, true, "tx.FinalityViolated"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, events := run(t, State{}, c.given...)
			if s.Status != c.status || s.Sealed != c.sealed {
				t.Errorf("status %s, sealed %v; want %s, %v", s.Status, s.Sealed, c.status, c.sealed)
			}
			if last := fmt.Sprintf("%T", events[len(events)-1]); last != c.last {
				t.Errorf("last event is %s, want %s", last, c.last)
			}
		})
	}
}

// A transaction that every node refuses for ever is settled, unless a node may have the bytes:
// then only a final verdict settles it. In both cases the bytes are not sent again.
func TestInvalidIsSettledOnlyIfNobodyHasIt(t *testing.T) {
	b7 := blockAt(7, "main")
	refused := Report{2, never, true, epoch}
	for name, c := range map[string]struct {
		given []Command
		want  bool
	}{
		"never handed":             {[]Command{accept(), refused}, true},
		"a reply was lost":         {[]Command{accept(), Report{1, lost, true, epoch}, refused}, false},
		"and the verdict is final": {[]Command{accept(), Report{1, lost, true, epoch}, refused, SeeNonce{b7, 6, epoch}, Finalize{Final: b7, At: epoch}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := run(t, State{}, append(c.given, Erase{epoch})...)
			if s.Settled() != c.want || s.Sendable() || !s.Erased {
				t.Errorf("settled %v, sendable %v, erased %v; want %v, false, true", s.Settled(), s.Sendable(), s.Erased, c.want)
			}
			if _, err := s.Decide(Retire{epoch}); (err == nil) != c.want {
				t.Errorf("retired: %v", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	b7 := blockAt(7, "main")
	queued, _ := run(t, State{}, accept())
	mined, _ := run(t, State{}, accept(), receiptIn(b7))
	final, _ := run(t, State{}, accept(), receiptIn(b7), Finalize{Final: b7, At: epoch})
	invalid, _ := run(t, State{}, accept(), Report{1, lost, true, epoch}, Report{2, never, true, epoch})
	cases := []struct {
		name  string
		state State
		give  Command
		want  eventlog.Refusal
	}{
		{"news of a stranger", State{}, receiptIn(b7), ErrUnknown},
		{"accepted too late", State{}, accept(func(a *Accepted) { a.Window.Before = uint64(epoch.Unix()) }), ErrAlreadyExpired},
		{"nonce can still be used", queued, SeeNonce{b7, 5, epoch}, ErrNonceCurrent},
		{"window is open", queued, SeeTime{b7, epoch}, ErrWindowOpen},
		{"too late to cancel", final, Cancel{"owner", epoch}, ErrSettled},
		{"nothing to cancel", invalid, Cancel{"owner", epoch}, ErrSettled},
		{"bytes may be needed", mined, Erase{epoch}, ErrNotSettled},
		{"not retired before its bytes are erased", mined, Retire{epoch}, ErrNotSettled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			events, err := c.state.Decide(c.give)
			if !errors.Is(err, c.want) || len(events) != 0 {
				t.Errorf("got %v, %v; want %s", events, err, c.want)
			}
		})
	}
}

// drawCommand draws a command on a small chain with two forks, so that every transition occurs
// often.
func drawCommand(t *rapid.T, attempt int) Command {
	block := func(name string) chain.Block {
		return blockAt(rapid.Uint64Range(1, 6).Draw(t, name), rapid.SampledFrom([]string{"main", "fork"}).Draw(t, name+"fork"))
	}
	at := epoch.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "at")) * time.Second)
	switch rapid.IntRange(0, 10).Draw(t, "command") {
	case 0:
		return accept(claimed, func(a *Accepted) { a.Window.Before = uint64(epoch.Unix()) + 4 })
	case 10:
		return rapid.SampledFrom([]Command{
			ConfirmGroup{block("confirmed"), at}, DoubtGroup{"unknown", block("asked"), at}, DoubtGroup{"revoked", block("asked"), at},
		}).Draw(t, "claim")
	case 1, 2:
		answers := rapid.SampledFrom([][]Answer{taken, busy, lost, never}).Draw(t, "answers")
		return Report{attempt + rapid.IntRange(0, 2).Draw(t, "skip"), answers, rapid.Bool().Draw(t, "everyone"), at}
	case 3:
		return SeeReceipt{chain.Receipt{Block: block("mined")}, at}
	case 4:
		return SeeNonce{block("nonce"), rapid.Uint64Range(4, 7).Draw(t, "current"), at}
	case 5:
		return SeeTime{block("time"), at}
	case 6:
		return LoseBlock{block("was"), block("now"), at}
	case 7:
		return Finalize{Final: block("final"), At: at}
	case 8:
		return rapid.SampledFrom([]Command{Cancel{"owner", at}, Erase{at}}).Draw(t, "wish")
	}
	return Retire{at}
}

// Every sequence of commands keeps the numbered invariants of the package comment.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		codec := Codec()
		attempts, recorded := 1, 0
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			c := drawCommand(t, attempts)
			if r, ok := c.(Report); ok {
				attempts = r.Attempt + 1
			}
			events, err := s.Decide(c)
			if err != nil {
				if !errors.As(err, new(eventlog.Refusal)) || len(events) > 0 {
					t.Fatalf("%T: %v with %v", c, err, events)
				}
				continue
			}
			before := s
			for _, e := range events {
				name, data, err := codec.Encode(e)
				if err != nil {
					t.Fatal(err)
				}
				back, err := codec.Decode(name, data)
				if err != nil || !cmp.Equal(e, back) {
					t.Fatalf("%s does not survive the log: %v", name, err)
				}
				s = s.Evolve(back)
				switch e.(type) {
				case Broadcast, Rejected:
					recorded++
				}
			}
			keeps(t, before, s, events)
			if again, err := s.Decide(c); err != nil && !errors.Is(err, ErrSettled) || len(again) > 0 {
				t.Fatalf("deciding %T twice added %v, %v", c, again, err)
			}
		}
		if limit := maxHistory(attempts); recorded > limit {
			t.Fatalf("%d of %d attempts recorded, more than %d", recorded, attempts, limit)
		}
	})
}

func keeps(t *rapid.T, before, after State, events []Event) {
	if (after.Verdict == StatusAbsent) != after.Block.IsZero() {
		t.Fatalf("invariant 1: verdict %q rests on %v", after.Verdict, after.Block)
	}
	if after.Sealed && after.Verdict == StatusAbsent {
		t.Fatal("invariant 2: sealed without a verdict")
	}
	if before.Sealed && (after.Verdict != before.Verdict || after.Block != before.Block || !after.Sealed) {
		t.Fatalf("invariant 2: a sealed %s in %d became %s in %d", before.Verdict, before.Block.Number, after.Verdict, after.Block.Number)
	}
	if before.Violated && len(events) > 0 {
		t.Fatalf("invariant 2: %v after a violation", events)
	}
	if after.Attempt < before.Attempt {
		t.Fatal("invariant 3: attempts went back")
	}
	if after.Erased && after.Sendable() {
		t.Fatalf("invariant 4: bytes erased of a transaction that is %s", after.Status)
	}
}

// maxHistory returns how many of n attempts may be recorded when four outcomes alternate: each
// when first seen and each time the number of attempts has doubled.
func maxHistory(n int) int {
	limit := 5
	for ; n > 0; n /= 2 {
		limit += 5
	}
	return limit
}

// A transaction that is refused for months keeps a short history, even if its refusals alternate
// and their messages contain changing numbers.
func TestHistoryIsBounded(t *testing.T) {
	s, _ := run(t, State{}, accept())
	recorded := 0
	for n := 1; n <= 100_000; n++ {
		answers := []Answer{{Class: Retry, Message: fmt.Sprintf("have %d want %d", n, n*7)}}
		switch n % 3 {
		case 1:
			answers = busy
		case 2:
			answers = []Answer{{Class: Retry, Message: fmt.Sprint("noise ", chain.Keccak(fmt.Append(nil, n)))}}
		}
		events, err := s.Decide(Report{n, answers, true, epoch})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			s, recorded = s.Evolve(e), recorded+1
		}
	}
	if recorded > 600 {
		t.Errorf("%d of 100000 attempts were recorded", recorded)
	}
	if len(s.Recorded) > maxOutcomes+1 {
		t.Errorf("%d outcomes are told apart", len(s.Recorded))
	}
}

func TestSchedule(t *testing.T) {
	s := DefaultSchedule()
	rapid.Check(t, func(t *rapid.T) {
		hash := chain.Keccak(rapid.SliceOf(rapid.Byte()).Draw(t, "hash"))
		n := rapid.IntRange(1, 1_000_000).Draw(t, "attempt")
		o := Outcome{Class: rapid.SampledFrom([]Class{Taken, Retry, Unknown}).Draw(t, "class")}
		expires := rapid.SampledFrom([]uint64{0, uint64(epoch.Unix()) + 2, uint64(epoch.Unix()) + 1800, 1<<64 - 1}).Draw(t, "expires")
		pause := s.Next(hash, n, o, epoch, expires).Sub(epoch)
		low, high := s.RetryMin, s.RetryMax
		if o.Class == Taken {
			low, high = s.RebroadcastMin, s.RebroadcastMax
		}
		if expires == uint64(epoch.Unix())+2 {
			low, high = 0, 2*time.Second
		} else if expires == uint64(epoch.Unix())+1800 {
			low, high = 0, s.ExpirySoonRetryMax
		}
		if pause < low || pause > high {
			t.Fatalf("pause %v after attempt %d is outside %v..%v", pause, n, low, high)
		}
		if again := s.Next(hash, n, o, epoch, expires).Sub(epoch); again != pause {
			t.Fatalf("the pause is %v, then %v", pause, again)
		}
		early := s.Next(hash, n, Outcome{Class: Retry, Cause: TooEarly}, epoch, 0).Sub(epoch)
		if n <= 12 && early > 500*time.Millisecond || n > 20 && early != s.RetryMax {
			t.Fatalf("pause %v after a node said for the %dth time that it is too early", early, n)
		}
		if o.Class == Retry && n <= 3 && expires == 0 && pause > 500*time.Millisecond {
			t.Fatalf("pause %v near eligibility", pause)
		}
	})
}
