package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// The two ways of writing a stream of events.
const (
	typeSSE   = "text/event-stream"
	typeLines = "application/x-ndjson"
)

// followRetry is how long a browser waits before it connects again.
const followRetry = 2 * time.Second

// A feed writes events to one client, as server-sent events (the HTML standard,
// section 9.2) or as lines of JSON. Between events it writes marks: a position up
// to which the client has everything that it asked for. In server-sent events that
// is an id without data, which browsers remember and do not show.
type feed struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	lines bool
	write time.Duration // how long the client may take for one of them
	begun bool          // the status was written
	buf   bytes.Buffer
}

// newFeed makes a stream of the kind that the request accepts. Nothing is written yet.
func newFeed(w http.ResponseWriter, r *http.Request, write time.Duration) *feed {
	return &feed{w: w, conn: http.NewResponseController(w), lines: prefersLines(r), write: write}
}

func (f *feed) header() {
	header := f.w.Header()
	header.Set("Content-Type", typeSSE)
	if f.lines {
		header.Set("Content-Type", typeLines)
	}
	header.Set("X-Accel-Buffering", "no") // what nginx needs to be told
}

// prefersLines reports whether lines of JSON are what a request accepts first.
func prefersLines(r *http.Request) bool {
	for accepted := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		switch media, _, _ := mime.ParseMediaType(accepted); media {
		case typeLines:
			return true
		case typeSSE:
			return false
		}
	}
	return false
}

func (f *feed) begin(at event.Position) error {
	f.header()
	f.begun = true
	f.w.WriteHeader(http.StatusOK)
	if !f.lines {
		fmt.Fprintf(&f.buf, "retry: %d\n", followRetry.Milliseconds())
	}
	return f.mark(at)
}

// event writes the event at a position, as it is shown.
func (f *feed) event(at event.Position, shown any) error {
	if !f.lines {
		fmt.Fprintf(&f.buf, "id: %s\ndata: ", positionText(at))
	}
	encoder := json.NewEncoder(&f.buf) // ends with one newline, and holds no other
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(shown); err != nil {
		return fmt.Errorf("encode the event at %d: %w", at, err)
	}
	if !f.lines {
		f.buf.WriteByte('\n')
	}
	return f.send()
}

// mark writes a position, at once.
func (f *feed) mark(at event.Position) error {
	if f.lines {
		fmt.Fprintf(&f.buf, "{\"position\":%s}\n", positionText(at))
	} else {
		fmt.Fprintf(&f.buf, ":\nid: %s\n\n", positionText(at))
	}
	if err := f.send(); err != nil {
		return err
	}
	return f.flush()
}

// end says that everything up to a position that was asked for as the last was sent. A
// browser is told by an event of a type of its own, for it would connect again.
func (f *feed) end(at event.Position) error {
	if f.lines {
		fmt.Fprintf(&f.buf, "{\"position\":%s,\"end\":true}\n", positionText(at))
	} else {
		fmt.Fprintf(&f.buf, "event: end\nid: %s\ndata: {\"position\":%s,\"end\":true}\n\n", positionText(at), positionText(at))
	}
	if err := f.send(); err != nil {
		return err
	}
	return f.flush()
}

// send hands on what is in the buffer. A socket's deadlines are by the machine's
// clock.
func (f *feed) send() error {
	_ = f.conn.SetWriteDeadline(time.Now().Add(f.write)) // else the write below fails
	if _, err := f.buf.WriteTo(f.w); err != nil {
		return &clientError{err}
	}
	return nil
}

func (f *feed) flush() error {
	if err := f.conn.Flush(); err != nil {
		return &clientError{err}
	}
	return nil
}

// clientError says that a client did not take what it was sent.
type clientError struct{ error }

func (e *clientError) Unwrap() error { return e.error }
