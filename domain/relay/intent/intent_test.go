package intent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

var epoch = time.Unix(1_800_000_000, 0).UTC()

func blockAt(n uint64, fork string) chain.Block {
	return chain.Block{
		Number: n, Hash: chain.Keccak(fmt.Append(nil, fork, n)), Parent: chain.Keccak(fmt.Append(nil, fork, n-1)),
		Time: uint64(epoch.Unix()) + n,
	}
}

// branch returns consecutive blocks of a fork.
func branch(fork string, from, to uint64) (list []chain.Block) {
	for n := from; n <= to; n++ {
		list = append(list, blockAt(n, fork))
	}
	return list
}

func hashOf(n int) chain.Hash { return chain.Keccak(fmt.Append(nil, "attempt ", n)) }

func create() Create { return Create{Request: asked(), At: epoch} }

// assign, requeue and attempt are the n-th assignment, its end and its attempts.
func assign(n int) Assign {
	return Assign{n, Place{chain.Address{1}, chain.NonceKey{31: 5}, uint64(n)}, 1, epoch}
}
func requeue(n int, kind EvidenceKind) Requeue {
	e := Evidence{Kind: kind}
	if kind != Released {
		e.Block = blockAt(9, "main")
	}
	return Requeue{n, 1, e, epoch}
}

// filled is a Requeue with the evidence that a no-op used up the nonce of an assignment.
func filled(n, hash int) Requeue {
	r := requeue(n, Filled)
	r.Evidence.Hash = hashOf(hash)
	return r
}

// takeOver and fenced are commands of a holder with another token.
func takeOver(n int, token uint64) Assign {
	a := assign(n)
	a.Token = token
	return a
}
func fenced(n int, token uint64) Requeue {
	r := requeue(n, Released)
	r.Token = token
	return r
}
func attempt(n, hash int, kind AttemptKind) Attempt {
	return Attempt{Assignment: n, Kind: kind, Hash: hashOf(hash), At: epoch}
}

// seen announces an attempt in the first of the given blocks.
func seen(hash int, list []chain.Block, status uint64, settled bool) Announce {
	return Announce{hashOf(hash), chain.Receipt{Block: list[0], Status: status}, list, settled, epoch}
}

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
	main, fork := branch("main", 7, 9), branch("fork", 7, 9)
	sent := []Command{create(), assign(1), attempt(1, 1, First)}
	then := func(more ...Command) []Command { return append(slices.Clone(sent), more...) }
	cancel, late := Cancel{"wrong", epoch}, Expire{asked().Deadline, epoch}
	stopped := func(more ...Command) []Command { return append(then(cancel, attempt(1, 2, NoOp)), more...) }
	cases := []struct {
		name   string
		given  []Command
		status Status
		last   string // type of the last event
	}{
		{"requested", []Command{create()}, StatusWaiting, "Requested"},
		{"assigned", []Command{create(), assign(1)}, StatusAssigned, "Assigned"},
		{"submitted", sent, StatusSubmitted, "Attempted"},
		{"bumped", then(attempt(1, 2, Bump)), StatusSubmitted, "Attempted"},
		{"mined", then(seen(1, main[:1], 1, false)), StatusMined, "Announced"},
		{"settled", then(seen(1, main, 1, true)), StatusCompleted, "Completed"},
		{"settled by and by", then(seen(1, main[:1], 1, false), seen(1, main, 1, true)), StatusCompleted, "Completed"},
		{"settled though nothing is new", then(seen(1, main, 1, false), seen(1, main[:1], 1, true)), StatusCompleted, "Completed"},
		{"either attempt may land", then(attempt(1, 2, Bump), seen(1, main, 1, true)), StatusCompleted, "Completed"},
		{"reverted", then(seen(1, main, 0, true)), StatusFailed, "Failed"},
		{"reverted, not settled", then(seen(1, main, 0, false)), StatusMined, "Announced"},
		{"un-mined", then(seen(1, main, 1, false), LoseBlock{main[0], fork[0], epoch}), StatusSubmitted, "Announced"},
		{"lost its last confirmation", then(seen(1, main, 1, true), LoseBlock{main[2], fork[2], epoch}), StatusCompleted, "Announced"},
		{"a block that is not ours left", then(seen(1, main, 1, false), LoseBlock{fork[0], main[0], epoch}), StatusMined, "Announced"},
		{"moved to another block", then(seen(1, main, 1, false), seen(1, fork, 1, false)), StatusMined, "Announced"},
		{"completed, then un-mined", then(seen(1, main, 1, true), LoseBlock{main[0], fork[0], epoch}), StatusSubmitted, "Announced"},
		{"completed elsewhere", then(seen(1, main, 1, true), seen(1, fork, 1, true)), StatusCompleted, "Completed"},
		{"completed, then reverted elsewhere", then(seen(1, main, 1, true), seen(1, fork, 0, true)), StatusFailed, "Failed"},
		{"released", []Command{create(), assign(1), requeue(1, Released)}, StatusWaiting, "Requeued"},
		{"its lane has another holder", []Command{create(), assign(1), takeOver(1, 2)}, StatusAssigned, "TakenOver"},
		{"released by the lane's next holder", []Command{create(), assign(1), takeOver(1, 2), fenced(1, 2)}, StatusWaiting, "Requeued"},
		{"assigned again", []Command{create(), assign(1), requeue(1, Released), assign(2)}, StatusAssigned, "Assigned"},
		{"a rival is final", then(requeue(1, Rival)), StatusWaiting, "Requeued"},
		{"a rival is final, and again", then(requeue(1, Rival), assign(2), attempt(2, 2, First), seen(2, main, 1, true)), StatusCompleted, "Completed"},
		{"lapsed and out of time", then(requeue(1, Lapsed), late), StatusFailed, "Failed"},
		{"canceled at once", []Command{create(), cancel}, StatusCanceled, "Canceled"},
		{"canceled when reserved", []Command{create(), assign(1), cancel}, StatusCanceling, "CancelRequested"},
		{"canceled when reserved, and released", []Command{create(), assign(1), cancel, requeue(1, Released)}, StatusCanceled, "Canceled"},
		{"canceled after the send", then(cancel), StatusCanceling, "CancelRequested"},
		{"signed before the cancel was heard of", []Command{create(), assign(1), cancel, attempt(1, 1, First)}, StatusCanceling, "Attempted"},
		{"the no-op is there", stopped(seen(2, main, 1, false)), StatusCanceling, "Announced"},
		{"the original is there instead", stopped(seen(1, main, 1, false)), StatusMined, "Announced"},
		{"the no-op's place is taken by the original", stopped(seen(2, main, 1, false), seen(1, fork, 1, false)), StatusMined, "Announced"},
		{"the no-op is final", stopped(seen(2, main, 1, true)), StatusCanceled, "Canceled"},
		{"the original lands all the same", stopped(seen(1, main, 1, true)), StatusCompleted, "Completed"},
		{"the original lands and reverts", stopped(seen(1, main, 0, true)), StatusFailed, "Failed"},
		{"the no-op is un-mined, the original lands", stopped(seen(2, main, 1, true), seen(1, fork, 1, true)), StatusCompleted, "Completed"},
		{"the no-op is un-mined", stopped(seen(2, main, 1, true), LoseBlock{main[0], fork[0], epoch}), StatusCanceling, "Announced"},
		{"canceled, and a rival is final", stopped(requeue(1, Rival)), StatusCanceled, "Canceled"},
		{"out of time at once", []Command{create(), late}, StatusFailed, "Failed"},
		{"out of time when sent", then(late), StatusCanceling, "CancelRequested"},
		{"out of time, the no-op is final", then(late, attempt(1, 2, NoOp), seen(2, main, 1, true)), StatusFailed, "Failed"},
		{"canceled when out of time", then(late, cancel), StatusCanceling, "CancelRequested"},
		{"would revert", []Command{create(), Fail{Simulation, "out of funds", epoch}}, StatusFailed, "Failed"},
		{"refused by every node", then(Fail{Refused, "intrinsic gas too low", epoch}), StatusCanceling, "CancelRequested"},
		{"to give its nonce back", []Command{create(), assign(1), Yield{1, "", epoch}}, StatusAssigned, "YieldRequested"},
		{"signed for before that was heard of", []Command{create(), assign(1), Yield{1, "", epoch}, attempt(1, 1, First)}, StatusSubmitted, "Attempted"},
		{"gave its nonce back", []Command{create(), assign(1), Yield{1, "", epoch}, requeue(1, Released), assign(2)}, StatusAssigned, "Assigned"},
		{"to give way", then(GiveWay{1, "", epoch}), StatusSubmitted, "GiveWayRequested"},
		{"a no-op in its way", then(GiveWay{1, "", epoch}, attempt(1, 2, NoOp)), StatusSubmitted, "Attempted"},
		{"gave way", then(GiveWay{1, "", epoch}, attempt(1, 2, NoOp), filled(1, 2)), StatusWaiting, "Requeued"},
		{"gave way, and goes on", then(GiveWay{1, "", epoch}, attempt(1, 2, NoOp), filled(1, 2), assign(2), attempt(2, 3, First)), StatusSubmitted, "Attempted"},
		{"mined before it gave way", then(GiveWay{1, "", epoch}, attempt(1, 2, NoOp), seen(1, main, 1, true)), StatusCompleted, "Completed"},
		{"canceled while it gives way", then(GiveWay{1, "", epoch}, attempt(1, 2, NoOp), cancel, seen(2, main, 1, true)), StatusCanceled, "Canceled"},
		{"sped up", then(SpeedUp{NewAmount(9), epoch}), StatusSubmitted, "SpeedUpRequested"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, events := run(t, State{}, c.given...)
			if s.Status() != c.status {
				t.Errorf("status %s, want %s", s.Status(), c.status)
			}
			if last := fmt.Sprintf("%T", events[len(events)-1]); last != "intent."+c.last {
				t.Errorf("last event is %s, want %s", last, c.last)
			}
		})
	}
}

// End events carry the reason, and whether a completed intent should have been stopped.
func TestEnds(t *testing.T) {
	main := branch("main", 7, 9)
	late := branch("main", asked().Deadline-uint64(epoch.Unix()), asked().Deadline-uint64(epoch.Unix())+2)
	sent := []Command{create(), assign(1), attempt(1, 1, First)}
	for name, c := range map[string]struct {
		given []Command
		want  End
	}{
		"despite the cancel":  {append(slices.Clone(sent), Cancel{"wrong", epoch}, seen(1, main, 1, true)), End{StatusCompleted, Withdrawn, "", hashOf(1), main[0], 5}},
		"despite the time":    {append(slices.Clone(sent), Expire{asked().Deadline, epoch}, seen(1, late, 1, true)), End{StatusCompleted, Deadline, "", hashOf(1), late[0], 5}},
		"in time after all":   {append(slices.Clone(sent), Expire{asked().Deadline, epoch}, seen(1, main, 1, true)), End{StatusCompleted, "", "", hashOf(1), main[0], 5}},
		"reverted":            {append(slices.Clone(sent), seen(1, main, 0, true)), End{StatusFailed, Reverted, "", hashOf(1), main[0], 5}},
		"would revert":        {[]Command{create(), Fail{Simulation, "no funds", epoch}}, End{StatusFailed, Simulation, "no funds", chain.Hash{}, chain.Block{}, 1}},
		"canceled by a no-op": {append(slices.Clone(sent), Cancel{"wrong", epoch}, attempt(1, 2, NoOp), seen(2, main, 1, true)), End{StatusCanceled, "", "wrong", hashOf(2), main[0], 6}},
		"the first reason":    {[]Command{create(), assign(1), Fail{Refused, "target", epoch}, Cancel{"wrong", epoch}, requeue(1, Released)}, End{StatusFailed, Refused, "target", chain.Hash{}, chain.Block{}, 2}},
	} {
		s, _ := run(t, State{}, c.given...)
		if d := cmp.Diff(&c.want, s.End); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestRefusals(t *testing.T) {
	main := branch("main", 7, 9)
	state := func(commands ...Command) State { s, _ := run(t, State{}, commands...); return s }
	waiting, assigned := state(create()), state(create(), assign(1))
	sent := state(create(), assign(1), attempt(1, 1, First))
	mined := state(create(), assign(1), attempt(1, 1, First), seen(1, main, 1, false))
	done := state(create(), assign(1), attempt(1, 1, First), seen(1, main, 1, true))
	canceled := state(create(), Cancel{"", epoch})
	moved := state(create(), assign(1), attempt(1, 1, First), requeue(1, Rival), assign(2))
	taken := state(create(), assign(1), takeOver(1, 2))
	own := requeue(1, Rival)
	own.Evidence.Hash = hashOf(1)
	broken := seen(1, []chain.Block{main[0], main[2]}, 1, false)
	headless := seen(1, main, 1, false)
	headless.Confirmations = main[1:]
	other := create()
	other.Request.Deadline++
	past := Create{Request: asked(func(r *Request) { r.Deadline = uint64(epoch.Unix()) }), At: epoch}
	if _, err := waiting.Decide(other); err == nil || !strings.Contains(err.Error(), asked().Key) || !strings.Contains(err.Error(), waiting.Requested.ID.String()) {
		t.Errorf("of whom the key is, is not told: %v", err)
	}
	for _, c := range []struct {
		name  string
		state State
		give  Command
		want  eventlog.Refusal
	}{
		{"nobody's intent", State{}, Cancel{}, ErrUnknown},
		{"a request that is none", State{}, Create{Request: Request{}, At: epoch}, ErrInvalidKey},
		{"too late", State{}, past, ErrDeadlinePassed},
		{"another request", waiting, other, ErrDiffers},
		{"another request, when it is done", done, other, ErrDiffers},
		{"assigned elsewhere", assigned, Assign{1, Place{Signer: chain.Address{1}}, 1, epoch}, ErrAssigned},
		{"assigned while it has a place", assigned, assign(2), ErrAssigned},
		{"assigned by one who slept", moved, assign(1), ErrAssigned},
		{"assigned when canceled", canceled, assign(1), ErrSettled},
		{"released when it may be anywhere", sent, requeue(1, Released), ErrLive},
		{"released by who has lost the lane", taken, requeue(1, Released), ErrFenced},
		{"its own attempt is no rival", sent, own, ErrLive},
		{"a rival of what a block holds", mined, requeue(1, Rival), ErrLive},
		{"nothing to lapse", assigned, requeue(1, Lapsed), ErrNotAssigned},
		{"a rival of what is done", done, requeue(1, Rival), ErrSettled},
		{"requeued from nowhere", waiting, requeue(1, Released), ErrNotAssigned},
		{"signed without a place", waiting, attempt(1, 1, First), ErrNotAssigned},
		{"signed when canceled", canceled, attempt(1, 1, First), ErrNotAssigned},
		{"bumped when it is done", done, attempt(1, 2, Bump), ErrSettled},
		{"given up when it is to be done", sent, attempt(1, 2, NoOp), ErrNotCanceling},
		{"signed for the place before", moved, attempt(1, 3, Bump), ErrNotAssigned},
		{"a stranger is mined", sent, seen(2, main, 1, false), ErrUnknownAttempt},
		{"ruled out, and mined", moved, seen(1, main, 1, false), ErrContradicted},
		{"blocks with a gap", sent, broken, ErrBrokenList},
		{"blocks of others", sent, headless, ErrBrokenList},
		{"canceled too late", done, Cancel{"", epoch}, ErrSettled},
		{"there is time", sent, Expire{asked().Deadline - 1, epoch}, ErrDeadlineOpen},
		{"there is always time", state(Create{Request: asked(func(r *Request) { r.Deadline = 0 }), At: epoch}), Expire{1 << 60, epoch}, ErrDeadlineOpen},
		{"to give back what it has not", state(create()), Yield{1, "", epoch}, ErrNotAssigned},
		{"to give back what it had", state(create(), assign(1), requeue(1, Released), assign(2)), Yield{1, "", epoch}, ErrNotAssigned},
		{"to give back what is signed", sent, Yield{1, "", epoch}, ErrLive},
		{"to give back when done", done, Yield{1, "", epoch}, ErrSettled},
		{"to give way unsigned", assigned, GiveWay{1, "", epoch}, ErrNotSigned},
		{"to give way when done", done, GiveWay{1, "", epoch}, ErrSettled},
		{"to give way in a block", state(create(), assign(1), attempt(1, 1, First), seen(1, main, 1, false)), GiveWay{1, "", epoch}, ErrLive},
		{"to give way elsewhere", moved, GiveWay{1, "", epoch}, ErrNotAssigned},
		{"filled by what it wants", state(create(), assign(1), attempt(1, 1, First), GiveWay{1, "", epoch}), filled(1, 1), ErrLive},
		{"filled and did not give way", state(create(), assign(1), attempt(1, 1, First), Cancel{"", epoch}, attempt(1, 2, NoOp)), filled(1, 2), ErrLive},
		{"announced by what it gives way to", state(create(), assign(1), attempt(1, 1, First), GiveWay{1, "", epoch}, attempt(1, 2, NoOp)), seen(2, main, 1, true), ErrNotCanceling},
		{"faster than done", done, SpeedUp{NewAmount(1), epoch}, ErrSettled},
		{"faster than the ceiling", sent, SpeedUp{NewAmount(20_000_000_001), epoch}, ErrOverCeiling},
		{"faster by less than a tenth", state(create(), SpeedUp{NewAmount(1001), epoch}), SpeedUp{NewAmount(1101), epoch}, ErrSmallRaise},
		{"faster too often", state(append([]Command{create()}, speedUps(SpeedUpsMax)...)...), SpeedUp{NewAmount(1 << 34), epoch}, ErrSpeedUps},
		{"faster to a cancel", state(create(), assign(1), Cancel{"", epoch}), SpeedUp{NewAmount(1), epoch}, ErrCanceling},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := c.state.Decide(c.give)
			if !errors.Is(err, c.want) || len(events) != 0 {
				t.Errorf("got %v, %v; want %s", events, err, c.want)
			}
		})
	}
}

// Commands that no correct caller sends panic.
func TestBrokenCallers(t *testing.T) {
	sent, _ := run(t, State{}, create(), assign(1), attempt(1, 1, First))
	for name, c := range map[string]Command{
		"assignment 0":            Assign{0, Place{}, 1, epoch},
		"without a token":         Assign{1, Place{}, 0, epoch},
		"an attempt of nothing":   Attempt{Assignment: 1, Kind: First, At: epoch},
		"an attempt at what":      Attempt{Assignment: 1, Kind: "hope", Hash: hashOf(2), At: epoch},
		"evidence of nothing":     Requeue{1, 1, Evidence{Kind: Rival}, epoch},
		"evidence of what":        Requeue{1, 1, Evidence{"hope", blockAt(9, "main"), chain.Hash{}}, epoch},
		"lost for no other":       LoseBlock{blockAt(7, "main"), chain.Block{}, epoch},
		"lost for itself":         LoseBlock{blockAt(7, "main"), blockAt(7, "main"), epoch},
		"the relay never cancels": Fail{Withdrawn, "", epoch},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			events, err := sent.Decide(c)
			t.Errorf("%s: %v, %v", name, events, err)
		}()
	}
	free, _ := run(t, State{}, create())
	for name, c := range map[string]Command{"assignment 2 first": assign(2), "another signs": Assign{1, Place{Signer: chain.Address{2}}, 1, epoch}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			_, _ = free.Decide(c)
		}()
	}
}

// A hundred concurrent requests, at any moment of an intent's life, make one intent.
func TestOneRequestOneIntent(t *testing.T) {
	main := branch("main", 7, 9)
	life := []Command{create(), assign(1), attempt(1, 1, First), seen(1, main, 1, false), seen(1, main, 1, true)}
	var s State
	for _, c := range life {
		s, _ = run(t, s, c)
		again := create()
		again.At = epoch.Add(1000 * time.Hour) // past the deadline of a new request
		if events, err := s.Decide(again); err != nil || len(events) > 0 {
			t.Errorf("%s: %v, %v", s.Status(), events, err)
		}
	}
}

// Details are cut at a character boundary.
func TestDetailsAreBounded(t *testing.T) {
	long := string(slices.Repeat([]rune{'ü'}, detailMax))
	_, events := run(t, State{}, create(), assign(1), Cancel{"x" + long, epoch})
	detail := events[2].(CancelRequested).Detail
	if len(detail) != detailMax-1 {
		t.Errorf("%d bytes are kept", len(detail))
	}
}

// The list of announced confirmations is bounded too.
func TestConfirmationsAreBounded(t *testing.T) {
	s, _ := run(t, State{}, create(), assign(1), attempt(1, 1, First), seen(1, branch("main", 1, ConfirmationsMax+5), 1, true))
	if len(s.Told) != ConfirmationsMax {
		t.Errorf("%d are told", len(s.Told))
	}
	if events, err := s.Decide(seen(1, branch("main", 1, ConfirmationsMax+9), 1, true)); err != nil || len(events) > 0 {
		t.Errorf("%v, %v", events, err)
	}
}
