package rest

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
)

// Buffer sizes in bytes for reading a body. bodyFirst is the size if no length is declared,
// bodyPromised the largest size that is allocated for a declared length.
const (
	bodyFirst    = 4 << 10
	bodyPromised = 64 << 10
)

// hasBody reports whether a request has a body. If the request declares no length, hasBody
// waits for the first byte and leaves it to be read.
func hasBody(r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength > 0
	}
	peeked := bufio.NewReaderSize(r.Body, bodyFirst)
	_, err := peeked.Peek(1)
	r.Body = struct {
		io.Reader
		io.Closer
	}{peeked, r.Body}
	return !errors.Is(err, io.EOF) // other errors appear again when the body is read
}

// readBody reads a request's whole body before anything is decoded, so a truncated body never
// has an effect. A request that is refused by its headers is not read, so a client that sends
// Expect: 100-continue is not told to continue.
func (a *api) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := a.Limits.BodyBytes
	if r.ContentLength > limit {
		return nil, ErrPayloadTooLarge.Because("%d bytes are more than %d", r.ContentLength, limit)
	}
	if encoding := strings.Join(r.Header.Values("Content-Encoding"), ", "); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, ErrUnsupportedEncoding.Because("Content-Encoding %s is not supported", Quote(encoding))
	}
	if !isJSON(r.Header.Values("Content-Type")) {
		return nil, ErrUnsupportedMediaType.Because("Content-Type must be application/json, in UTF-8")
	}
	// One byte more lets the last read see EOF without growing the buffer. A large declared
	// length allocates nothing before its bytes arrive.
	room := min(max(r.ContentLength+1, bodyFirst), bodyPromised)
	body, err := readAll(http.MaxBytesReader(w, r.Body, limit), make([]byte, 0, room))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, ErrPayloadTooLarge.Because("more than %d bytes", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, ErrRequestTimeout.Because("%d bytes arrived within %s", len(body), a.Limits.ReadTimeout)
	case err != nil:
		return nil, ErrInvalidRequest.Because("the body ended after %d bytes, before its end", len(body))
	}
	on := exchangeOf(r)
	on.sought = on.search() // the client decides when its body ends
	return body, a.chargeBody(w, on, len(body))
}

// readAll is io.ReadAll into a given buffer.
func readAll(from io.Reader, into []byte) ([]byte, error) {
	for {
		n, err := from.Read(into[len(into):cap(into)])
		into = into[:len(into)+n]
		switch {
		case errors.Is(err, io.EOF):
			return into, nil
		case err != nil:
			return into, err
		case len(into) == cap(into):
			into = append(into, 0)[:len(into)]
		}
	}
}

// isJSON reports whether there is one Content-Type and it is application/json. A charset must
// be UTF-8 if it is given.
func isJSON(contentTypes []string) bool {
	if len(contentTypes) != 1 {
		return false
	}
	media, params, err := mime.ParseMediaType(contentTypes[0])
	if err != nil || media != "application/json" {
		return false
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}
