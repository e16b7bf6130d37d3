// Command alert prints a line for each transaction that failed or was reorged, on standard
// output. After a crash it may print the last lines again.
//
//	alert -store postgres://watchtower@db/watchtower
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func main() {
	var store examples.Store
	store.Flags(flag.CommandLine)
	all := flag.Bool("all", false, "also report events from before the first start of this program")
	flag.Parse()
	examples.Main("alert", func(ctx context.Context) error {
		return run(ctx, store, os.Stdout, feed.Options{Group: "alert", FromEnd: !*all})
	})
}

// topic selects the events that may be worth a line.
const topic = "name:tx.mined.,tx.rejected.,tx.expired.,tx.stale_by_nonce.,tx.reorged.,tx.finality_violated."

// run prints lines until ctx ends.
func run(ctx context.Context, store examples.Store, to io.Writer, o feed.Options) error {
	return examples.Run(ctx, store, o, func(s *feed.Subscriber) error {
		messages, err := s.Subscribe(ctx, topic)
		if err != nil {
			return err
		}
		teller := teller{to: to, codec: tx.Codec()}
		var lanes sync.WaitGroup
		for range 4 { // lines of different transactions need not wait for each other
			lanes.Go(func() {
				for m := range messages {
					if err := teller.tell(m); err != nil {
						feed.Nack(m, err)
						continue
					}
					m.Ack()
				}
			})
		}
		lanes.Wait()
		return nil
	})
}

// teller writes one line at a time.
type teller struct {
	mu    sync.Mutex
	to    io.Writer
	codec eventlog.Codec[tx.Event]
}

func (t *teller) tell(m *message.Message) error {
	e, err := t.codec.Decode(m.Metadata[feed.KeyName], m.Payload)
	if err != nil {
		return err
	}
	what := alert(e)
	if what == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err = fmt.Fprintf(t.to, "%s %s %s\n", m.Metadata[feed.KeyAt], m.Metadata[feed.KeyStream], what)
	return err
}

// alert returns the line for an event; empty for events that need none.
func alert(e tx.Event) string {
	switch e := e.(type) { //nolint:gochecksumtype // the others are good news, or none
	case tx.Mined:
		if e.Receipt.Status == 0 {
			return fmt.Sprintf("reverted in block %d", e.Receipt.Block.Number)
		}
	case tx.Rejected:
		if e.Permanent {
			return "refused permanently: " + e.Reason
		}
	case tx.Expired:
		return "expired"
	case tx.StaleByNonce:
		return fmt.Sprintf("another transaction used its nonce; the chain's next nonce is %d", e.Current)
	case tx.Reorged:
		return fmt.Sprintf("withdrawn: block %d was replaced", e.Was.Number)
	case tx.FinalityViolated:
		return fmt.Sprintf("final verdict contradicted: block %d was replaced", e.Was.Number)
	}
	return ""
}
