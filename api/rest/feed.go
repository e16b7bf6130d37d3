package rest

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The two formats of an event stream.
const (
	typeSSE   = "text/event-stream"
	typeLines = "application/x-ndjson"
)

// followRetry is how long a browser waits before it reconnects.
const followRetry = 2 * time.Second

// A feed writes events to one client, as server-sent events (the HTML standard, section 9.2) or
// as JSON lines. Between events it writes marks. A mark is a position up to which the client
// has received every event that it asked for. In server-sent events a mark is an id without
// data, which browsers store and do not deliver.
type feed struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	lines bool
	write time.Duration // deadline of each write
	begun bool          // the status has been written
	buf   bytes.Buffer
}

// newFeed returns a feed in the format that the request accepts. It writes nothing yet.
func newFeed(w http.ResponseWriter, r *http.Request, write time.Duration) *feed {
	return &feed{w: w, conn: http.NewResponseController(w), lines: prefersLines(r), write: write}
}

func (f *feed) header() {
	header := f.w.Header()
	header.Set("Content-Type", typeSSE)
	if f.lines {
		header.Set("Content-Type", typeLines)
	}
	header.Set("X-Accel-Buffering", "no") // makes nginx stream the answer unbuffered
}

// prefersLines reports whether the request accepts JSON lines before server-sent events.
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

func (f *feed) begin(at eventlog.Position) error {
	f.header()
	f.begun = true
	f.w.WriteHeader(http.StatusOK)
	if !f.lines {
		fmt.Fprintf(&f.buf, "retry: %d\n", followRetry.Milliseconds())
	}
	return f.mark(at)
}

// Encoded is an event as shown to clients, as one line of JSON with a newline. All streams of the event
// share it.
type Encoded []byte

// Encode encodes an event as shown to clients.
func Encode(shown any) (Encoded, error) { return encode(shown) }

// event writes the event at a position, as shown to the client, and returns its size in bytes.
func (f *feed) event(at eventlog.Position, shown any) (bytes int, err error) {
	text, encoded := shown.(Encoded)
	if !encoded {
		if text, err = Encode(shown); err != nil {
			return 0, fmt.Errorf("encode the event at %d: %w", at, err)
		}
	}
	if !f.lines {
		fmt.Fprintf(&f.buf, "id: %s\ndata: ", positionText(at))
	}
	f.buf.Write(text)
	if !f.lines {
		f.buf.WriteByte('\n')
	}
	return len(text), f.send()
}

// mark writes a position and flushes it.
func (f *feed) mark(at eventlog.Position) error {
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

// end writes that every event up to the requested last position was sent. A browser needs an
// event of a separate type for this, as it would reconnect otherwise.
func (f *feed) end(at eventlog.Position) error {
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

// send writes the buffer to the client. Deadlines of sockets use the machine's clock.
func (f *feed) send() error {
	_ = f.conn.SetWriteDeadline(time.Now().Add(f.write)) // if this fails, so does the write
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

// clientError is an error while writing to the client.
type clientError struct{ error }

func (e *clientError) Unwrap() error { return e.error }
