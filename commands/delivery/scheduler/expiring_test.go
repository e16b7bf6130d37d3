package scheduler_test

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// The rules of the expiring key in small: validBefore may be at most five seconds ahead,
// and has to be more than one second after the newest block.
var expiringRules = chaintest.Rules{ExpiringWindow: 5, BeforeMargin: 1}

// expiring returns a transaction with an expiring nonce.
func expiring(sender byte, after, before uint64) chain.Signed {
	return chain.Signed{
		Chain: id, Type: 0x76, Sender: chain.Address{sender}, NonceKey: chain.ExpiringKey, Gas: 50_000,
		Window: chain.Window{After: after, Before: before},
	}
}

// nextSecond waits for the next second of the clock to begin, and returns it.
func nextSecond() uint64 {
	now := time.Now()
	second := now.Truncate(time.Second).Add(time.Second)
	<-time.After(second.Sub(now))
	return uint64(second.Unix())
}

// Nodes accept an expiring nonce only in the last seconds before validBefore. The
// transaction is sent when these begin, by our clock or the chain's, and mined within them.
func TestExpiringNonces(t *testing.T) {
	// How far the chain's clock is behind or ahead of ours; the last is more than the
	// window.
	for _, skew := range []time.Duration{0, -2 * time.Second, 7 * time.Second} {
		onBoth(t, func(t *testing.T, s stored) {
			t.Parallel()
			d := deliver(t, s, expiringRules, func() time.Time { return time.Now().Add(skew) })
			d.schedule, d.every = tx.DefaultSchedule(), 200*time.Millisecond
			d.start()
			now := nextSecond()
			ahead := uint64(max(skew, 0) / time.Second)
			all := []chain.Signed{
				expiring(1, 0, now+5+ahead),           // exactly the window away
				expiring(2, 0, now+7+ahead),           // later than that
				expiring(3, now+4+ahead, now+8+ahead), // not before validAfter
				expiring(4, now+1+ahead, now+8+ahead), // validAfter is before the window
			}
			for i, hash := range d.accept(all...) {
				d.within(skew, all[i], hash)
			}
		})
	}
}

// within checks when a transaction with an expiring nonce is sent and mined. The chain's
// clock is ahead of ours by skew.
func (d *delivery) within(skew time.Duration, signed chain.Signed, hash chain.Hash) {
	t := d.t
	t.Helper()
	eligible := max(signed.Window.After, signed.Window.Before-expiringRules.ExpiringWindow)
	d.until("it is executed", func() bool { return d.state(hash).Status == tx.StatusExecuted })
	if b := d.state(hash).Block; b.Time < eligible || b.Time > eligible+1 {
		t.Errorf("window %v: mined at %d, eligible at %d", signed.Window, b.Time, eligible)
	}
	sends := 0
	for _, delivered := range d.chain.Received() {
		if delivered.Hash != hash {
			continue
		}
		sends++
		chains, ours := delivered.At, delivered.At.Add(-skew)
		if max(chains.Unix(), ours.Unix()) < int64(eligible) {
			t.Errorf("window %v: sent at %s, eligible at %d by either clock", signed.Window, ours, eligible)
		}
	}
	if sends > 8 {
		t.Errorf("window %v: sent %d times", signed.Window, sends)
	}
}

// A transaction whose seconds pass while no node can be reached expires: a block proves it,
// and nothing more is sent. The other transactions are not affected.
func TestExpiringNonceMissed(t *testing.T) {
	onBoth(t, func(t *testing.T, s stored) {
		t.Parallel()
		d := deliver(t, s, expiringRules, nil)
		d.schedule, d.every = tx.DefaultSchedule(), 200*time.Millisecond
		d.start()
		now := nextSecond()
		d.node.Set(chaintest.Faults{Down: true})
		missed, next := expiring(1, 0, now+4), expiring(2, 0, now+11)
		hashes := d.accept(missed, next)
		d.until("its time has passed", func() bool { return d.chain.Head().Time > missed.Window.Before })
		if s := d.state(hashes[0]); s.Verdict != "" {
			t.Errorf("%s though no node could be asked", s.Verdict)
		}
		d.node.Set(chaintest.Faults{})
		d.until("it has expired", func() bool { return d.state(hashes[0]).Status == tx.StatusExpired })
		if s := d.state(hashes[0]); !missed.Window.ClosedAt(s.Block.Time) {
			t.Errorf("expired by a block of %d, before %d", s.Block.Time, missed.Window.Before)
		}
		d.until("the other is executed", func() bool { return d.state(hashes[1]).Status == tx.StatusExecuted })
		if n := d.sent()[hashes[0]]; n != 0 {
			t.Errorf("sent %d times", n)
		}
	})
}
