package auditor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Step is one event in the history of a stream.
type Step struct {
	Line
	// After is the time since the previous event.
	After time.Duration `json:"after,omitempty"`
	// Cause is the event that led to this one, if known: "tx.accepted.v1 of …".
	Cause   string   `json:"cause,omitempty"`
	Changed []Change `json:"changed,omitempty"`
	// Answers are the endpoints' answers to an attempt.
	Answers []tx.Answer `json:"answers,omitempty"`
	// Why explains the cause of the event and the next step.
	Why string `json:"why,omitempty"`
}

// Change is a field of the state that an event has changed.
type Change struct {
	Field string          `json:"field"`
	From  json.RawMessage `json:"from,omitempty"`
	To    json.RawMessage `json:"to,omitempty"`
}

// String shows the field with its values before and after.
func (c Change) String() string {
	text := func(value json.RawMessage) string {
		if len(value) == 0 {
			return "nothing"
		}
		return string(value)
	}
	return fmt.Sprintf("%s: %s → %s", c.Field, text(c.From), text(c.To))
}

// folder folds one stream.
type folder interface {
	// add applies an event and explains it.
	add(r eventlog.Recorded, step *Step) error
	state() any
}

// folder returns the folder for the stream's kind: a transaction, a group, or one of the further kinds.
// Other streams have no state.
func (of Life) folder() folder {
	switch name := string(of.Stream); {
	case strings.HasPrefix(name, tx.StreamPrefix):
		return &transaction{codec: tx.Codec(), plan: of.Plan}
	case strings.HasPrefix(name, group.StreamPrefix):
		return &members{codec: group.Codec()}
	default:
		for _, k := range of.Kinds {
			if strings.HasPrefix(name, k.Prefix) {
				return &further{k.New()}
			}
		}
	}
	return nil
}

// Life is the stream to explain. Plan is today's schedule, from which the due time of an
// attempt's successor is derived. Kinds are the further kinds of streams that are explained.
type Life struct {
	Stream eventlog.Stream
	Plan   tx.Schedule
	Kinds  []Kind
}

// Kind is a further kind of streams, which the package that has it explains.
type Kind struct {
	Prefix string // of the streams' names
	// Named, unless nil, returns the streams that a text may name, and a description of them; none if
	// the text names no stream of the kind.
	Named func(text string, chains []chain.ID) (names []eventlog.Stream, what string)
	New   func() Folder
}

// Folder folds one stream of a [Kind].
type Folder interface {
	// Add applies an event, and explains it in a sentence.
	Add(r eventlog.Recorded) (why string, err error)
	// State returns the state, which is an object in JSON.
	State() any
}

// further is a folder of a further kind.
type further struct{ Folder }

func (f *further) add(r eventlog.Recorded, step *Step) (err error) {
	step.Why, err = f.Add(r)
	return err
}

func (f *further) state() any { return f.State() }

// Show returns the recorded history of a stream. With an error it returns the steps read so far.
func Show(ctx context.Context, s Source, of Life) ([]Step, error) {
	name := of.Stream
	var steps []Step
	causes := map[eventlog.ID]string{}
	f := of.folder()
	var last time.Time
	for r, err := range stream(ctx, s, name) {
		if err != nil {
			return steps, err
		}
		step := Step{Line: LineOf(r)}
		if len(steps) > 0 {
			step.After = r.At.Sub(last)
		}
		last = r.At
		if f != nil {
			before := f.state()
			if err := f.add(r, &step); err != nil {
				return steps, fmt.Errorf("%s version %d: %w", name, r.Version, err)
			}
			step.Changed = changed(before, f.state())
		}
		causes[r.ID] = fmt.Sprintf("%s, version %d here", r.Name, r.Version)
		steps = append(steps, step)
	}
	if err := relatives(ctx, s, name, f, causes); err != nil {
		return steps, err
	}
	for i := range steps {
		if id := steps[i].Meta.Causation; !id.IsZero() {
			if steps[i].Cause = causes[id]; steps[i].Cause == "" {
				steps[i].Cause = "event " + id.String()
			}
		}
	}
	return steps, nil
}

// relativesMost limits the number of members' streams read to find the causes of a group's
// events.
const relativesMost = 500

// relatives adds the events that may have caused a stream's events: those in the stream of the
// transaction's group, or in the streams of the group's members.
func relatives(ctx context.Context, s Source, name eventlog.Stream, f folder, causes map[eventlog.ID]string) error {
	var names []eventlog.Stream
	switch f := f.(type) {
	case *transaction:
		if a := f.is.Accepted; a.Group != nil {
			names = append(names, group.ID{Chain: a.Chain, Sender: a.Sender, Group: *a.Group}.Stream())
		}
	case *members:
		id, err := group.ParseStream(name)
		if err != nil {
			return err
		}
		for _, m := range f.is.List() {
			if len(names) < relativesMost {
				names = append(names, tx.Stream(id.Chain, m.Hash))
			}
		}
	}
	for _, name := range names {
		for r, err := range stream(ctx, s, name) {
			if err != nil {
				return err
			}
			causes[r.ID] = fmt.Sprintf("%s, version %d of %s", r.Name, r.Version, name)
		}
	}
	return nil
}

// Until is the point up to which a state is replayed. The zero Until is the end.
type Until struct {
	Version eventlog.Version
	Point
}

// ParseUntil reads the values of the flags, of which at most one may be given.
func ParseUntil(version, position uint64, at string) (u Until, err error) {
	given := 0
	for _, is := range []bool{version != 0, position != 0, at != ""} {
		if is {
			given++
		}
	}
	if given > 1 {
		return u, errors.New("give only one of a version, a position and a time")
	}
	u.Version, u.Position = eventlog.Version(version), eventlog.Position(position)
	if at != "" {
		if u.Time, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return u, fmt.Errorf("%q is not a time such as 2026-01-31T12:00:00Z", at)
		}
	}
	return u, nil
}

func (u Until) passed(r eventlog.Recorded) bool {
	return u.Version != 0 && r.Version > u.Version || u.Point.passed(r)
}

// Moment is the state of a stream at a point.
type Moment struct {
	Stream   eventlog.Stream   `json:"stream"`
	Version  eventlog.Version  `json:"version"` // of the last event included
	Position eventlog.Position `json:"position"`
	At       time.Time         `json:"at,omitzero"`
	State    any               `json:"state"`
	// Why is the explanation of the last event that has an explanation.
	Why string `json:"why,omitempty"`
}

// Replay returns the state of a stream at a point. It is an error if the stream did not exist
// then, or had not reached that version.
func Replay(ctx context.Context, s Source, of Life, until Until) (Moment, error) {
	name := of.Stream
	m := Moment{Stream: name}
	f := of.folder()
	if f == nil {
		return m, fmt.Errorf("%s is of no kind of streams with a state", name)
	}
	head, err := s.Head(ctx)
	if err != nil {
		return m, err
	}
	if until.Position > head {
		return m, notYetf("position %d does not exist yet: the log ends at %d", until.Position, head)
	}
	for r, err := range stream(ctx, s, name) {
		if err != nil {
			return m, err
		}
		if until.passed(r) {
			if m.Version == 0 {
				return m, notYetf("%s did not exist at that point: it begins at position %d, at %s", name, r.Position, r.At.UTC().Format(time.RFC3339Nano))
			}
			break
		}
		var step Step
		if err := f.add(r, &step); err != nil {
			return m, fmt.Errorf("%s version %d: %w", name, r.Version, err)
		}
		m.Version, m.Position, m.At = r.Version, r.Position, r.At.UTC()
		if step.Why != "" {
			m.Why = step.Why
		}
	}
	if until.Version > m.Version {
		return m, notYetf("%s has no version %d yet: its last is %d", name, until.Version, m.Version)
	}
	m.State = f.state()
	return m, nil
}

// changed lists the differences between two states, field by field. It omits Recorded, the
// outcomes that a transaction has recorded: attempts show the same.
func changed(before, after any) (all []Change) {
	was, is := fields(before), fields(after)
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if name == "Recorded" || bytes.Equal(was[name], is[name]) {
			continue
		}
		c := Change{Field: name, From: was[name], To: is[name]}
		if name == "Accepted" {
			c.From = nil // the field did not exist before
		}
		all = append(all, c)
	}
	return all
}

// Members returns the members of a state, as JSON, by their names.
func Members(state any) (all map[string]json.RawMessage, err error) {
	text, err := json.Marshal(state)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

func fields(state any) map[string]json.RawMessage {
	all, err := Members(state)
	if err != nil {
		panic(fmt.Sprintf("auditor: a state that is no JSON: %v", err)) // states are made of plain values
	}
	return all
}

// members folds a group.
type members struct {
	codec eventlog.Codec[group.Event]
	is    group.State
}

func (g *members) state() any { return g.is }

func (g *members) add(r eventlog.Recorded, step *Step) error {
	e, err := g.codec.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	before := g.is
	g.is = g.is.Evolve(e)
	switch e := e.(type) {
	case group.Joined:
		step.Why = fmt.Sprintf("Transaction %s with nonce %d has joined, as member %d.", e.Hash, e.Nonce, g.is.Members)
	case group.Canceled:
		step.Why = fmt.Sprintf("Its owner has canceled the %d members that it had, %d of which were canceled before. They are not sent again, but a member that a node already has may still be mined.", e.Members, before.Canceled)
	}
	return nil
}
