package watchtower

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Problem is an error answer of the service (RFC 9457). Branch on Code, which never changes;
// Detail is for people. An error answer from elsewhere, such as a proxy, is a Problem without a
// Code.
type Problem struct {
	Type      string `json:"type,omitempty"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Reason    string `json:"reason"` // the fault in the bytes of a transaction
	Retryable bool   `json:"retryable"`
	RequestID string `json:"requestId"`
	// Errors are the faults of the request that have places in it.
	Errors []Fault `json:"errors,omitempty"`

	// Unanswered means that an earlier try of the same request got no usable answer, so that
	// the request may have been carried out although this try was refused.
	Unanswered bool `json:"-"`
	// RetryAfter is the pause that the service demands before the next request; 0 for none. A
	// call waits for up to a minute by itself.
	RetryAfter time.Duration `json:"-"`
}

// Fault is a fault of a request. One of Pointer, Parameter and Header names its place.
type Fault struct {
	Pointer   string `json:"pointer,omitempty"` // into the body: a JSON pointer as a URI fragment (RFC 6901, section 6)
	Parameter string `json:"parameter,omitempty"`
	Header    string `json:"header,omitempty"`
	Detail    string `json:"detail"`
}

// ProblemKind explains a code of a problem.
type ProblemKind struct {
	Type      string `json:"type"`
	Code      string `json:"code"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Retryable bool   `json:"retryable"`
	Meaning   string `json:"meaning"` // what happened and what to do
}

func (c caller) problem(ctx context.Context, code string) (ProblemKind, error) {
	var kind ProblemKind
	r := get("/problems/"+url.PathEscape(code), nil)
	r.header = http.Header{"Accept": {"application/json"}}
	err := c.call(ctx, r, &kind)
	return kind, err
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s", p.Status, cmp.Or(p.Code, p.Title))
	for _, more := range []string{p.Reason, p.Detail} {
		if more != "" {
			text += ": " + more
		}
	}
	return text
}

// Temporary reports whether the same request may succeed later.
func (p *Problem) Temporary() bool {
	switch p.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return p.Retryable
}

// NoAnswerError means that no try of a request got a usable answer: the connection failed or was
// cut, or the answer took too long or was not the service's. The request may have been carried
// out. Repeating it is safe.
type NoAnswerError struct {
	Tries int   // how many times the request was sent
	Err   error // of the last try
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("no answer after %d tries: %v", e.Tries, e.Err)
}

func (e *NoAnswerError) Unwrap() error { return e.Err }

// OutcomeUnknown reports whether a request that failed with err may have been carried out all the
// same. Repeat the same request, with the same key, to find out. If it is false, the request was
// refused.
func OutcomeUnknown(err error) bool {
	if errors.As(err, new(*NoAnswerError)) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var p *Problem
	return errors.As(err, &p) && (p.Unanswered || p.Status == http.StatusRequestTimeout || p.Status >= http.StatusInternalServerError)
}

func problemOf(status int, body []byte) *Problem {
	p := &Problem{}
	if json.Unmarshal(body, p) == nil && p.Code != "" {
		p.Status = status
		return p
	}
	p = &Problem{Status: status, Title: cmp.Or(strings.ToLower(http.StatusText(status)), "unexpected status")}
	if status >= 300 && status < 400 {
		p.Detail = "a redirect is not followed, because the API key would go to another host"
	}
	return p
}
