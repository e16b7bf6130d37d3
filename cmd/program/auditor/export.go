package auditor

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Point is a place in the log: a position, or a time if the position is zero.
type Point struct {
	Position eventlog.Position
	Time     time.Time
}

// ParsePoint reads a position or an RFC 3339 time.
func ParsePoint(text string) (p Point, err error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err == nil {
		return Point{Position: eventlog.Position(n)}, nil
	}
	if p.Time, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return p, fmt.Errorf("%q is neither a position nor a time such as 2026-01-31T12:00:00Z", text)
	}
	return p, nil
}

// reached reports whether an event is at the point or after it. Every event reaches the zero
// Point.
func (p Point) reached(r eventlog.Recorded) bool {
	if !p.Time.IsZero() {
		return !r.At.Before(p.Time)
	}
	return r.Position >= p.Position
}

// passed reports whether an event is after the point. No event passes the zero Point.
func (p Point) passed(r eventlog.Recorded) bool {
	switch {
	case !p.Time.IsZero():
		return r.At.After(p.Time)
	case p.Position != 0:
		return r.Position > p.Position
	}
	return false
}

// Selection is the exported part of a log: the events between two points, both included, of
// streams with a name prefix.
type Selection struct {
	From, To Point
	Stream   string
	CSV      bool // CSV instead of JSON lines
	// Progress is called with the position that was read, and the last position to read; may be nil.
	Progress func(at, end eventlog.Position)
}

// Line is an event in exported form.
type Line struct {
	Position eventlog.Position `json:"position"`
	Stream   eventlog.Stream   `json:"stream"`
	Version  eventlog.Version  `json:"version"`
	At       time.Time         `json:"at"`
	ID       eventlog.ID       `json:"id"`
	Name     string            `json:"name"`
	Data     json.RawMessage   `json:"data"`
	Meta     eventlog.Meta     `json:"meta"`
	// Raw is the data byte for byte if it is not compact JSON. Data is null if it is not JSON.
	Raw []byte `json:"raw,omitempty"`
}

// LineOf returns the exported form of an event.
func LineOf(r eventlog.Recorded) Line {
	l := Line{r.Position, r.Stream, r.Version, r.At.UTC(), r.ID, r.Name, r.Data, r.Meta, nil}
	var compact bytes.Buffer
	if err := json.Compact(&compact, r.Data); err != nil {
		l.Data, l.Raw = json.RawMessage("null"), r.Data
	} else if !bytes.Equal(compact.Bytes(), r.Data) {
		l.Raw = r.Data
	}
	return l
}

// columns are a CSV export's first row.
var columns = []string{"position", "stream", "version", "at", "id", "name", "correlation", "causation", "actor", "trace", "link", "data"}

func (l Line) row() []string {
	optional := func(id eventlog.ID) string {
		if id.IsZero() {
			return ""
		}
		return id.String()
	}
	link := ""
	if !l.Meta.Link.IsZero() {
		link = l.Meta.Link.String()
	}
	data := []byte(l.Data)
	if l.Raw != nil {
		data = l.Raw
	}
	return []string{
		strconv.FormatUint(uint64(l.Position), 10), string(l.Stream), strconv.FormatUint(uint64(l.Version), 10),
		l.At.Format(time.RFC3339Nano), l.ID.String(), l.Name, optional(l.Meta.Correlation), optional(l.Meta.Causation),
		plain(l.Meta.Actor), plain(l.Meta.Trace), link, string(data),
	}
}

// plain keeps a spreadsheet from evaluating a value as a formula.
func plain(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// Export writes a selection and returns the number of its events. It holds one page of events in
// memory at a time.
func Export(ctx context.Context, s Source, sel Selection, to io.Writer) (written uint64, err error) {
	write, flush := jsonLines(to)
	if sel.CSV {
		w := csv.NewWriter(to)
		write = func(l Line) error { return w.Write(l.row()) }
		flush = func() error { w.Flush(); return w.Error() }
		if err := w.Write(columns); err != nil {
			return 0, err
		}
	}
	end, err := sel.end(ctx, s)
	if err != nil {
		return 0, err
	}
	after := eventlog.Position(0)
	if sel.From.Time.IsZero() && sel.From.Position > 0 {
		after = sel.From.Position - 1
	}
	for r, err := range all(ctx, s, after) {
		if err != nil {
			return written, errors.Join(err, flush())
		}
		if sel.To.Time.IsZero() && sel.To.passed(r) {
			break // times may decrease, positions do not
		}
		if sel.Progress != nil {
			sel.Progress(r.Position, max(end, r.Position))
		}
		if !sel.From.reached(r) || sel.To.passed(r) || !strings.HasPrefix(string(r.Stream), sel.Stream) {
			continue
		}
		if err := write(LineOf(r)); err != nil {
			return written, err
		}
		written++
	}
	return written, flush()
}

// end is the last position to read, for the progress.
func (sel Selection) end(ctx context.Context, s Source) (eventlog.Position, error) {
	if sel.Progress == nil {
		return 0, nil
	}
	head, err := s.Head(ctx)
	if sel.To.Time.IsZero() && sel.To.Position != 0 {
		head = min(head, sel.To.Position)
	}
	return head, err
}

func jsonLines(to io.Writer) (write func(Line) error, flush func() error) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return func(l Line) error { return e.Encode(l) }, func() error { return nil }
}
