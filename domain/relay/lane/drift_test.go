package lane

import "testing"

// Drift counts nonces used on one side alone. A landing above the witness's block is no drift,
// and neither is a nonce in flight.
func TestDrift(t *testing.T) {
	in := func(number uint64) func(Witness) Witness {
		return func(w Witness) Witness { w.Block = block(number, "a"); return w }
	}
	landed := func(nonce uint64) []Command {
		who := int(nonce - 9)
		return []Command{sign(nonce, intent(who), 1), land(nonce, 1, block(90, "a"), false)}
	}
	three := []Command{reserve(1, 2, 3)}
	for _, x := range []struct {
		name     string
		commands []Command
		witness  Witness
		want     int64
	}{
		{"nothing was handed out", nil, told(10), 0},
		{"in flight", three, told(10), 0},
		{"landed", append(three, landed(10)...), told(11), 0},
		{"somebody has used what is ahead", nil, told(14), 4},
		{"somebody has used what is in flight", three, told(12), 2},
		{"both", three, told(15), 5},
		{"landed above the block that was asked about", append(three, landed(10)...), in(89)(told(10)), 0},
		{"the chain has not what landed", append(three, landed(10)...), in(90)(told(10)), -1},
		{"the chain is below all", nil, told(7), -3},
		{"the gap was reclaimed", []Command{Advance{1, told(14), epoch}, Reclaim{1, 9, told(11), epoch}}, told(11), 0},
		{"closed by a final block", []Command{reserve(1), sign(10, intent(1), 1), land(10, 1, block(90, "a"), true)}, told(11), 0},
	} {
		if got := begun(t, x.commands...).Drift(x.witness); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
	if got := run(t, State{}, open(1)).Drift(told(10)); got != 0 {
		t.Errorf("a lane that knows nothing has a drift of %d", got)
	}
}

func TestFront(t *testing.T) {
	s := begun(t, reserve(1, 2, 3))
	if _, waits := s.Front(); waits {
		t.Error("nothing was signed, and it waits")
	}
	s = run(t, s, sign(11, intent(2), 1), sign(12, intent(3), 1), land(11, 1, block(90, "a"), false))
	if first, waits := s.Front(); !waits || first.Nonce != 12 {
		t.Errorf("%d, %v", first.Nonce, waits)
	}
}
