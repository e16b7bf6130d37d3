// Package webhook sends notices to HTTP endpoints by the Standard Webhooks specification,
// version 1.0.0: three headers, one of which signs the other two and the body. It makes single
// attempts; domain/notice decides on retries.
//
// Clients choose the URLs. So a Guard decides which of them may be called, and connects only to
// addresses that it has checked.
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

// Limits of a message.
const (
	BodyMax    = 64 << 10 // bytes; the specification recommends less than 20 kB
	IDMax      = 64       // characters of an id
	SecretsMax = 4        // secrets that sign one message
)

// Message is one message to an endpoint.
type Message struct {
	// ID identifies the event and is the same in every attempt: receivers use it to detect
	// repeats. It consists of letters, digits, '-' and '_'.
	ID   string
	Body []byte // JSON
}

// Endpoint is the target of a client's notices.
type Endpoint struct {
	URL string
	// Secrets sign each message, newest first. While a secret is being replaced, the previous
	// one signs too.
	Secrets []Secret
}

// check checks whether a message can be sent at all.
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

// PingType is the type of a message that only tests whether an endpoint answers.
const PingType = "ping"

// Ping is a message without an event, with which a client tests its endpoint.
func Ping(id string, at time.Time) Message {
	body, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      struct{}  `json:"data"`
	}{Type: PingType, Timestamp: at.UTC()})
	if err != nil {
		panic(fmt.Sprintf("a ping at %s: %v", at, err)) // a year above 9999
	}
	return Message{ID: id, Body: body}
}
