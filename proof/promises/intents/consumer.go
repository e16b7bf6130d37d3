package intents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// Consumer checks P22 for one receiver of notices, such as a webhook. Notices may come more than
// once. It is not safe for concurrent use.
type Consumer struct {
	Name string
	// InOrder means that a notice first comes after the one before it, as at a webhook without
	// dead letters. Otherwise notices may come in any order.
	InOrder bool
	// GivenUp reports whether a missing notice was given up and the failure was reported. nil:
	// none was.
	GivenUp func(id chain.IntentID, sequence uint64) bool

	came  map[chain.IntentID]map[uint64]came
	cases promises.Cases
}

// Cases returns the cases of the promise so far.
func (c *Consumer) Cases() promises.Cases { return c.cases }

type came struct {
	said intent.Said
	text []byte
}

// Came reports whether a notice has come.
func (c *Consumer) Came(id chain.IntentID, sequence uint64) bool {
	_, has := c.came[id][sequence]
	return has
}

// Shown judges a notice that has come: every delivery under one id has the same content.
func (c *Consumer) Shown(n intent.Notice) []promises.Violation {
	text, err := json.Marshal(n)
	if err != nil {
		return c.broken(n.Intent, "%s cannot be read: %v", n.ID(), err)
	}
	if c.came == nil {
		c.came = map[chain.IntentID]map[uint64]came{}
	}
	if c.came[n.Intent] == nil {
		c.came[n.Intent] = map[uint64]came{}
	}
	if before, twice := c.came[n.Intent][n.Sequence]; twice && !bytes.Equal(before.text, text) {
		return c.broken(n.Intent, "%s got %s and earlier %s under one id", c.Name, text, before.text)
	}
	before := n.Sequence - 1
	early := c.InOrder && before > 0 && !c.Came(n.Intent, before)
	c.came[n.Intent][n.Sequence] = came{n.Said, text}
	if early {
		return c.broken(n.Intent, "%s got sequence %d without the earlier sequence %d", c.Name, n.Sequence, before)
	}
	return nil
}

func (c *Consumer) broken(id chain.IntentID, format string, args ...any) []promises.Violation {
	return []promises.Violation{{Promise: promises.P22, Stream: intent.Stream(id), Evidence: fmt.Sprintf(format, args...)}}
}

// Finish judges a consumer at the end: no notice is missing or invented, and applying them by
// sequence gives the log's state. isFor selects the intents whose notices it gets.
func (c *Consumer) Finish(j *Judge, isFor func(chain.IntentID) bool) []promises.Violation {
	var found []promises.Violation
	for _, l := range j.sorted() {
		if isFor(l.id) {
			found = append(found, c.judge(l)...)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.came), byID) {
		if l := j.lives[id]; l == nil || !isFor(id) {
			found = append(found, c.broken(id, "%s got its events without being its receiver", c.Name)...)
		}
	}
	return found
}

func (c *Consumer) judge(l *life) []promises.Violation {
	c.cases.Add(promises.P22)
	notices := c.came[l.id]
	var v View
	lacks := uint64(0)
	for n := uint64(1); n <= l.sequence; n++ {
		told, ok := notices[n]
		switch {
		case ok:
			v = v.after(told.said)
		case c.GivenUp != nil && c.GivenUp(l.id, n):
			lacks++
		default:
			return c.broken(l.id, "%s never got sequence %d of %d", c.Name, n, l.sequence)
		}
	}
	if uint64(len(notices))+lacks != l.sequence {
		return c.broken(l.id, "%s got %d public events of %d", c.Name, len(notices), l.sequence)
	}
	if lacks == 0 && !v.equal(l.view) {
		return c.broken(l.id, "%s ends with %s; the true state is %s", c.Name, v, l.view)
	}
	return nil
}

// after returns the view after a notice.
func (v View) after(said intent.Said) View {
	switch said := said.(type) {
	case intent.TxAccepted, intent.TxSubmitted, intent.TxReplaced: // no effect on the view
	case intent.TxReceiptUpdated:
		v.Receipt, v.End = said.Receipt, ""
	case intent.TxConfirmed:
		if said.NewFork {
			v.Confirmations = nil
		}
		v.Confirmations = slices.Concat(v.Confirmations, said.Confirmations)
		if said.Done {
			v.End = "done"
		}
	case intent.TxFailed:
		v.End = string(said.Reason)
	}
	return v
}
