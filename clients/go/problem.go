package watchtower

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Problem is an error answer of the service (RFC 9457). Branch on Code, which never changes;
// Detail is for people. An error answer from elsewhere, such as a proxy, is a Problem without a
// Code.
type Problem struct {
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Reason    string `json:"reason"` // the fault in the bytes of a transaction
	Retryable bool   `json:"retryable"`
	RequestID string `json:"requestId"`
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

func problemOf(status int, body []byte) *Problem {
	p := &Problem{}
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		return &Problem{Status: status, Title: cmp.Or(strings.ToLower(http.StatusText(status)), "unexpected status")}
	}
	p.Status = status
	return p
}
