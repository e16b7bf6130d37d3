package simulation

import (
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// draw draws the fate of a call.
func (w *world) draw(c *call) fate {
	f := fate{wait: w.delay(w.plan.StoreDelay), late: true}
	switch c.kind {
	case telling:
		f.wait = 0
	case asking:
		f = w.drawAsking()
	case posting:
		f = w.drawPosting(c)
	case signing:
		f = w.drawSigning()
	case reading, writing, viewing:
		if c.ready != nil {
			f.wait += w.agenda.between(0, w.plan.Lag)
		}
		if !w.healed {
			w.drawStored(c, &f)
		}
		if c.log {
			w.drawCluster(c, &f)
		}
	}
	return f
}

// delay draws the duration of a usually quick step.
func (w *world) delay(usual time.Duration) time.Duration {
	return time.Duration(float64(usual) * (0.5 + min(w.agenda.rand.ExpFloat64(), 8)))
}

// slowMost is the maximum duration of a slow step.
const slowMost = 6 * time.Second

func (w *world) drawStored(c *call, f *fate) {
	s, a := w.plan.Store, w.agenda
	writes := c.kind == writing
	if c.kind == viewing {
		if !a.chance(s.View) {
			return
		}
		switch f.commit = a.rand.IntN(3); f.commit {
		case commitLost:
			f.name = "read models: commit lost"
		case commitCut:
			f.name = "read models: commit unknown"
		default:
			f.name, f.lost, f.err = "read models: refused", true, errRefused
		}
		return
	}
	switch {
	case w.storeDown > a.now():
		f.name, f.lost, f.err = "store: unreachable", true, errRefused
		f.wait += a.between(0, time.Second)
	case a.chance(s.Refuse):
		f.name, f.lost, f.err = "store: refused", true, errRefused
	case writes && a.chance(s.Lose):
		f.name, f.lost, f.err = "store: lost before", true, unknown()
		f.wait += a.between(0, 3*time.Second)
	case writes && a.chance(s.Cut):
		f.name, f.cut, f.err = "store: acknowledgment lost", true, unknown()
		f.reply = a.between(0, 3*time.Second)
	case a.chance(s.Hang):
		f.name, f.reply = "store: hangs", a.between(slowMost, 5*slowMost)
	case a.chance(s.Slow):
		f.name, f.wait, f.reply = "store: slow", a.between(0, slowMost), a.between(0, slowMost)
	}
	if writes {
		f.late = a.chance(0.5)
	}
}

// unknown is the error of a store whose connection was cut.
func unknown() error { return fmt.Errorf("%w: %w", eventlog.ErrUnknown, errCut) }

func (w *world) drawAsking() fate {
	l, a := w.plan.Link, w.agenda
	f := fate{wait: w.delay(w.plan.NodeDelay / 2), reply: w.delay(w.plan.NodeDelay / 2)}
	if w.healed {
		return f
	}
	f.late = a.chance(l.Late)
	switch {
	case a.chance(l.Refuse):
		f.name, f.lost, f.err = "link: refused", true, errLink
	case a.chance(l.Cut):
		f.name, f.cut, f.err = "link: answer lost", true, errLink
		if a.chance(0.5) {
			f.name, f.cut, f.never = "link: answer never comes", false, true
		}
	case a.chance(l.Slow):
		f.name, f.wait, f.reply = "link: slow", a.between(0, slowMost), a.between(0, slowMost/2)
	case a.chance(l.Twice):
		f.name, f.twice = "link: request twice", true
	case a.chance(l.Limit):
		f.name, f.lost, f.err = "link: 429", true, errLimited
	case a.chance(l.Garbage):
		f.name, f.cut, f.err = "link: garbage", true, errGarbage
	}
	return f
}
