package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// choosy is a signer that refuses payloads with certain bytes.
type choosy struct {
	Signer
	not []byte
}

func (c choosy) Sign(ctx context.Context, payload []byte) ([]byte, error) {
	if bytes.Contains(payload, c.not) {
		return nil, fmt.Errorf("remote signer: %w", ErrRejected.Because("the remote signer responded 403"))
	}
	return c.Signer.Sign(ctx, payload)
}

// A signer rejects one intent by a rule of its own and signs others. That intent ends, also
// if nothing else is to be signed at that time. The other intents and the signer are not
// affected.
func TestSignerRejectsAnIntent(t *testing.T) {
	w := newWorld(t)
	forbidden := chain.Address{0xba, 0xd0, 0xba, 0xd0, 0xba}
	bad := func(r *intent.Request) { r.Calls[0].To = &forbidden }
	_, l := w.live(0, false)
	l.Signer = choosy{l.Signer, forbidden[:]}
	a, err := w.opened(l)
	must(t, err)
	alone := w.ask(w.request(1, bad))
	w.until(a, "it has failed", func() bool { return w.intent(alone[0]).Status() == intent.StatusFailed })
	ids := w.ask(w.request(2, bad), w.request(3), w.request(4))
	w.until(a, "the others are done", w.ended(intent.StatusCompleted, ids[1:]...))
	for _, id := range append(alone, ids[0]) {
		if s := w.intent(id); s.Status() != intent.StatusFailed || s.End.Reason != intent.Refused {
			t.Errorf("%s, %+v", s.Status(), s.End)
		}
	}
	if k := w.key(); k.Status() != signer.StatusServing || len(k.Failures) > 0 {
		t.Errorf("the signer is %s after %d failures", k.Status(), len(k.Failures))
	}
	w.judge()
}

// A signer that rejects everything, for example because our credentials have expired, has
// failed: intents wait, and do not fail one after the other.
func TestSignerRejectsEverything(t *testing.T) {
	w := newWorld(t)
	_, l := w.live(0, false)
	refusing := &failing{l.Signer, fmt.Errorf("remote signer: %w", ErrRejected.Because("the remote signer responded 401"))}
	l.Signer = refusing
	a, err := w.opened(l)
	must(t, err)
	ids := w.ask(w.request(1), w.request(2))
	for n := 0; w.key().Status() != signer.StatusDisabled; n++ {
		if err := w.turns(a, 1); err == nil || n > 20 {
			t.Fatalf("after %d turns: %v", n, err)
		}
		w.clock.pass(guard.DefaultSettings().Apart)
		w.block()
	}
	if last := w.key().Failures; last[len(last)-1].Kind != signer.Rejected {
		t.Errorf("it is disabled for %s", last[len(last)-1].Kind)
	}
	refusing.err = nil
	w.goOn(a, 3)
	for _, id := range ids {
		w.is(id, intent.StatusWaiting)
	}
	w.order(signer.Resume{Actor: "ada", Reason: "it knows us again", At: w.now()})
	w.clock.pass(w.settings.Claim)
	w.until(a, "they are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// If the payer's signer fails, sponsored intents wait, and are not affected otherwise.
func TestPayerFails(t *testing.T) {
	for name, trouble := range map[string]error{
		"it has lost the key":        ErrUnknownKey,
		"it signs with another":      ErrWrongKey.Because("of somebody"),
		"it will not sign for us":    ErrRejected.Because("the remote signer responded 401"),
		"it does not answer":         errors.New("no answer"),
		"nobody has its key in here": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w, l, payer := newSponsored(t)
			bad := &failing{payer, trouble}
			l.Payer = bad
			if trouble == nil {
				l.Payer = nil
			}
			a, err := w.opened(l)
			must(t, err)
			ids := w.ask(w.request(1, func(r *intent.Request) { r.Gas.Sponsored = true }))
			for range 3 {
				if err := w.turns(a, 1); err == nil {
					t.Error("nobody complains")
				}
				w.block()
			}
			if s := w.intent(ids[0]); s.End != nil || s.Stop.Reason != "" {
				t.Fatalf("the intent is to end: %+v %+v", s.End, s.Stop)
			}
			if trouble == nil { // it holds no nonce that others wait for
				others := w.ask(w.request(2))
				for n := 0; !w.ended(intent.StatusCompleted, others...)(); n++ {
					if _ = w.turns(a, 1); n > 20 {
						t.Fatal("others wait for it")
					}
					w.block()
				}
			}
			bad.err = nil
			l.Payer = bad
			w.clock.pass(w.settings.Claim)
			w.until(a, "it is done", w.ended(intent.StatusCompleted, ids...))
			if n := len(w.key().Failures); n > 0 {
				t.Errorf("the signer has %d failures", n)
			}
			w.judge()
		})
	}
}
