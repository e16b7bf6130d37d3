// Command settle settles a shop's orders by the relay's messages alone: it asks neither the relay
// nor a node. An order's key is the idempotency key of its intent. It reads webhooks, or the relay's
// event stream, or the subject to which `relayer forward` publishes, and writes a line of JSON for
// each order. It ends when all orders are settled.
//
//	SETTLE_SECRET=whsec_… settle -orders orders.json -listen 127.0.0.1:9000
//	settle -orders orders.json -events http://127.0.0.1:8422/v1/events
//	settle -orders orders.json -nats nats://127.0.0.1:4222 -subject relayer-events
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/examples"
)

func main() {
	orders := flag.String("orders", "orders.json", "a JSON object of the orders by key, each with chainId and calls")
	listen := flag.String("listen", "", "the address at which to receive webhooks")
	secret := flag.String("secret", os.Getenv("SETTLE_SECRET"), "the webhook's secret, from POST /v1/webhooks of the relay; or in SETTLE_SECRET")
	events := flag.String("events", "", "the relay's event stream")
	token := flag.String("token", os.Getenv("SETTLE_TOKEN"), "the API key for the event stream; or in SETTLE_TOKEN")
	broker := flag.String("nats", "", "a NATS server with JetStream")
	subject := flag.String("subject", "relayer-events", "the subject to which the relay's events are published")
	flag.Parse()
	examples.Main("settle", func(ctx context.Context) error {
		text, err := os.ReadFile(*orders)
		if err != nil {
			return err
		}
		b, err := newBook(text, os.Stdout)
		if err != nil {
			return err
		}
		switch {
		case *listen != "":
			return receive(ctx, b, *listen, *secret)
		case *events != "":
			return follow(ctx, b, *events, *token)
		case *broker != "":
			return consume(ctx, b, *broker, *subject)
		}
		return errors.New("one of -listen, -events and -nats is needed")
	})
}

// receive receives webhooks until all orders are settled.
func receive(ctx context.Context, b *book, at, secret string) error {
	verifier, err := watchtower.NewWebhookVerifier(secret)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return err
	}
	settled := make(chan struct{}, 1)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, body, err := verifier.Read(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if err := b.read(body); err != nil { // the relay sends it again
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		if b.open() == 0 {
			select {
			case settled <- struct{}{}:
			default:
			}
		}
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-settled:
	case <-ctx.Done():
	}
	err = server.Shutdown(context.WithoutCancel(ctx))
	<-served
	return err
}

// rest is the pause before a broken event stream is opened again.
const rest = 200 * time.Millisecond

// follow reads the event stream until all orders are settled. It continues a broken stream behind
// the last event that it has read.
func follow(ctx context.Context, b *book, stream, token string) error {
	after := "0"
	for b.open() > 0 {
		if err := listen(ctx, b, stream, token, &after); err != nil && !errors.Is(err, errBroken) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
	}
	return nil
}

var errBroken = errors.New("the stream has ended")

// lineMost is the most bytes of a line of the event stream.
const lineMost = 1 << 20

// listen reads server-sent events. after is the position of the last event that was read.
func listen(ctx context.Context, b *book, stream, token string, after *string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, stream, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Last-Event-ID", *after)
	if token != "" {
		request.Header.Set("X-API-Key", token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return errBroken
	}
	defer response.Body.Close() //nolint:errcheck // it was read as far as needed
	switch status := response.StatusCode; {
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return errBroken
	case status != http.StatusOK:
		return fmt.Errorf("%s answers %s", stream, response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, lineMost)
	next := *after
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "": // the event is complete
			*after = next
		case "data":
			if err := b.read([]byte(value)); err != nil {
				return err
			}
			if b.open() == 0 {
				return nil
			}
		case "id": // before the data of its event
			if _, err := strconv.ParseUint(value, 10, 64); err == nil {
				next = value
			}
		}
	}
	return errBroken
}

// consume reads the broker until all orders are settled.
func consume(ctx context.Context, b *book, server, subject string) error {
	conn, err := nats.Connect(server)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, subject, jetstream.ConsumerConfig{Durable: "settle", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		return err
	}
	for b.open() > 0 {
		m, err := consumer.Next(jetstream.FetchContext(ctx))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := b.read(m.Data()); err != nil {
			return errors.Join(err, m.Nak())
		}
		if err := m.Ack(); err != nil {
			return err
		}
	}
	return nil
}
