package linear

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Append asks a stream to append events at a version; without events it reads the stream.
type Append struct {
	Stream   eventlog.Stream
	Expected eventlog.Version
	IDs      []eventlog.ID
}

// Outcome is how a call to a stream ended.
type Outcome string

// The outcomes.
const (
	Stood      Outcome = "stands"
	Conflicted Outcome = "conflict"
	Failed     Outcome = "failed" // nothing was written, and nothing will be
	Unsure     Outcome = "unknown"
	Seen       Outcome = "seen"
)

// Appended is a call's result.
type Appended struct {
	Outcome  Outcome
	Version  eventlog.Version // the stream's version: after the append, or at the conflict
	Position eventlog.Position
	Repeated bool
	Seen     []eventlog.ID // ids returned by a read
}

// Streams is a history of appends to streams and of reads.
type Streams struct{ *History[Append, Appended] }

// NewStreams makes an empty history.
func NewStreams() Streams { return Streams{NewHistory[Append, Appended](time.Now)} }

// Told counts the appends with an outcome.
func (s Streams) Told(o Outcome) int {
	return s.told(func(_ Append, a Appended) bool { return a.Outcome == o })
}

// Repeats counts the appends that returned that their events were stored already.
func (s Streams) Repeats() int {
	return s.told(func(_ Append, a Appended) bool { return a.Repeated })
}

// Names are the streams with calls.
func (s Streams) Names() (all []eventlog.Stream) {
	for _, c := range s.sorted() {
		if !slices.Contains(all, c.in.Stream) {
			all = append(all, c.in.Stream)
		}
	}
	return all
}

// Judge checks the history against streams that handle one call after the other, and the
// positions against the order of time.
func (s Streams) Judge() Verdict {
	calls := settle(s.sorted())
	v := search(streamModel(), operations(calls), "the streams")
	if v.Wrong == "" {
		v.Wrong = outOfOrder(calls)
	}
	return v
}

// settle ends calls of unknown outcome where that no longer matters. Once the same append has
// returned that it is stored, or that others' events have its place, the earlier try has
// happened or never will. An append missing in its stream's last read, after all other calls,
// need not have happened. This excludes no order, and shortens the search.
func settle(calls []call[Append, Appended]) []call[Append, Appended] {
	type key struct {
		stream   eventlog.Stream
		expected eventlog.Version
		first    eventlog.ID
		n        int
	}
	of := func(a Append) key { return key{a.Stream, a.Expected, a.IDs[0], len(a.IDs)} }
	settled := map[key]time.Duration{}
	for _, c := range calls {
		over := c.out.Outcome == Stood || c.out.Outcome == Conflicted && c.out.Version > c.in.Expected
		if len(c.in.IDs) == 0 || !over {
			continue
		}
		if at, ok := settled[of(c.in)]; !ok || c.ended < at {
			settled[of(c.in)] = c.ended
		}
	}
	final := lastReads(calls)
	var kept []call[Append, Appended]
	for _, c := range calls {
		if c.open {
			stands, read := final[c.in.Stream]
			if at, ok := settled[of(c.in)]; ok {
				c.open, c.ended = false, max(at, c.ended)
			} else if read && !strings.Contains(stands, joined(c.in.IDs)) {
				continue // no read has seen it
			}
		}
		kept = append(kept, c)
	}
	return kept
}

// lastReads returns each stream's last read, if it began after all other calls had ended.
func lastReads(calls []call[Append, Appended]) map[eventlog.Stream]string {
	ended, last := map[eventlog.Stream]time.Duration{}, map[eventlog.Stream]call[Append, Appended]{}
	for _, c := range calls {
		if at := last[c.in.Stream]; c.out.Outcome == Seen && c.began >= at.began {
			last[c.in.Stream] = c
		}
	}
	for _, c := range calls {
		if c.began < last[c.in.Stream].began {
			ended[c.in.Stream] = max(ended[c.in.Stream], c.ended)
		}
	}
	final := map[eventlog.Stream]string{}
	for name, c := range last {
		if c.out.Outcome == Seen && ended[name] <= c.began {
			final[name] = joined(c.out.Seen)
		}
	}
	return final
}

// idBytes is the length of an id within the state of a stream, which is the concatenation of
// its ids.
const idBytes = len(eventlog.ID{})

func joined(ids []eventlog.ID) string {
	var all strings.Builder
	for _, id := range ids {
		all.Write(id[:])
	}
	return all.String()
}

func streamModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			return partition(all, func(o porcupine.Operation) eventlog.Stream { return o.Input.(call[Append, Appended]).in.Stream })
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			return stepStream(state.(string), input.(call[Append, Appended]).in, output.(Appended))
		},
		DescribeOperation: func(input, output any) string {
			return describeAppend(input.(call[Append, Appended]).in, output.(Appended))
		},
		DescribeState: func(state any) string { return describeStream(state.(string)) },
	}
}

// stepStream applies one call to the modelled stream.
func stepStream(stands string, in Append, out Appended) (bool, string) {
	if len(in.IDs) == 0 {
		return out.Outcome == Failed || joined(out.Seen) == stands, stands
	}
	ids, version := joined(in.IDs), eventlog.Version(len(stands)/idBytes)
	after, told := stands, Appended{Outcome: Conflicted, Version: version}
	if from := int(in.Expected) * idBytes; in.Expected == version { //nolint:gosec // versions of tests are small
		after = stands + ids
		told = Appended{Outcome: Stood, Version: in.Expected + eventlog.Version(len(in.IDs))}
	} else if in.Expected < version && strings.HasPrefix(stands[from:], ids) {
		told = Appended{Outcome: Stood, Version: in.Expected + eventlog.Version(len(in.IDs)), Repeated: true}
	}
	switch out.Outcome {
	case Failed:
		return true, stands
	case Unsure: // if it matters, it takes effect after all reads
		return true, after
	}
	return out.Outcome == told.Outcome && out.Version == told.Version && out.Repeated == told.Repeated, after
}

// outOfOrder describes an append that began after another had ended and has the lower position;
// empty if there is none.
func outOfOrder(calls []call[Append, Appended]) string {
	var wrote []call[Append, Appended]
	for _, c := range calls {
		if c.out.Outcome == Stood && !c.out.Repeated && !c.open {
			wrote = append(wrote, c)
		}
	}
	byEnd := slices.Clone(wrote)
	slices.SortStableFunc(byEnd, func(a, b call[Append, Appended]) int { return int(a.ended - b.ended) })
	var highest call[Append, Appended]
	ended := 0
	for _, c := range wrote { // by their beginning
		for ended < len(byEnd) && byEnd[ended].ended < c.began {
			if byEnd[ended].out.Position > highest.out.Position {
				highest = byEnd[ended]
			}
			ended++
		}
		if c.out.Position <= highest.out.Position {
			return fmt.Sprintf("an append to %s that began at %s has position %d; one to %s that had ended at %s has %d",
				c.in.Stream, c.began, c.out.Position, highest.in.Stream, highest.ended, highest.out.Position)
		}
	}
	return ""
}

func describeAppend(in Append, out Appended) string {
	if len(in.IDs) == 0 {
		return fmt.Sprintf("read: %s", describeStream(joined(out.Seen)))
	}
	text := fmt.Sprintf("append %s at %d: %s", describeStream(joined(in.IDs)), in.Expected, out.Outcome)
	if out.Outcome == Stood || out.Outcome == Conflicted {
		text += fmt.Sprintf(", version %d", out.Version)
	}
	if out.Repeated {
		text += ", repeated"
	}
	return text
}

// describeStream shows the ids' first bytes.
func describeStream(stands string) string {
	var all []string
	for ; len(stands) >= idBytes; stands = stands[idBytes:] {
		all = append(all, fmt.Sprintf("%x", stands[:2]))
	}
	return "[" + strings.Join(all, " ") + "]"
}

// partition splits calls by name: calls with different names are independent, so each name is
// judged separately.
func partition[K comparable](all []porcupine.Operation, of func(porcupine.Operation) K) [][]porcupine.Operation {
	at := map[K]int{}
	var parts [][]porcupine.Operation
	for _, o := range all {
		i, ok := at[of(o)]
		if !ok {
			i = len(parts)
			at[of(o)], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], o)
	}
	return parts
}
