// Package webhook sends notices to HTTP endpoints by the Standard Webhooks
// specification, version 1.0.0: three headers, of which one signs the other two and
// the body. It makes one attempt at a time; when there is another is decided in
// domain/notice.
//
// The URLs are strangers' wishes, so a Guard says which of them may be called, and
// connects to no address that it has not looked at.
package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The headers of a webhook.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// Bounds of what is sent.
const (
	BodyMax    = 64 << 10 // the specification recommends less than 20 kB
	IDMax      = 64       // characters of an id
	SecretsMax = 4        // secrets that sign at the same time
)

// Message is what is sent to an endpoint.
type Message struct {
	// ID names the event, and is the same in every attempt: receivers know by it what
	// they have received before. It has letters, digits, '-' and '_'.
	ID   string
	Body []byte // JSON
}

// Endpoint is where a client wants its notices.
type Endpoint struct {
	URL string
	// Secrets sign each message: the newest first, and with it, while a secret is being
	// replaced, the one before.
	Secrets []Secret
}

// check says whether a message can be sent at all.
func (m Message) check(secrets []Secret) error {
	switch {
	case m.ID == "" || len(m.ID) > IDMax || strings.ContainsFunc(m.ID, notInID):
		return fmt.Errorf("a message's id has 1 to %d letters, digits, '-' and '_'", IDMax)
	case len(m.Body) > BodyMax:
		return fmt.Errorf("a message's body has %d bytes, at most %d", len(m.Body), BodyMax)
	case len(secrets) == 0 || len(secrets) > SecretsMax:
		return fmt.Errorf("%d secrets sign a message, at least 1 and at most %d", len(secrets), SecretsMax)
	}
	for _, s := range secrets {
		if s.key == nil {
			return fmt.Errorf("a secret is empty")
		}
	}
	return nil
}

func notInID(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// PingType is the type of a message that only tries whether an endpoint answers.
const PingType = "ping"

// Ping is a message that tells nothing: a client tries its endpoint with it.
func Ping(id string, at time.Time) Message {
	body, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      struct{}  `json:"data"`
	}{Type: PingType, Timestamp: at.UTC()})
	if err != nil {
		panic(fmt.Sprintf("a ping at %s: %v", at, err)) // a year beyond 9999
	}
	return Message{ID: id, Body: body}
}
