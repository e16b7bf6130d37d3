package app

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	relayapi "github.com/tempo-watchtower/watchtower/api/relay"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/relay/messages"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	figures "github.com/tempo-watchtower/watchtower/infra/metrics/relay"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// NoticeRows is the queue of webhook deliveries, in the database of delivery's due queue. All
// replicas share it.
type NoticeRows interface {
	notifier.Queue
	notifier.Rows
	Endpoint(ctx context.Context, id notice.EndpointID) (notice.Endpoint, bool, error)
	Endpoints(ctx context.Context, client *string, after notice.EndpointID, limit int) ([]notice.Endpoint, error)
	Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) ([]notice.Notice, error)
	Count(ctx context.Context, endpoint notice.EndpointID, stage notice.Stage, most int) (int, error)
	Forget(ctx context.Context, before time.Time, limit int) (int, error)
	Depth(ctx context.Context) (notice.Depth, error)
	Queued(ctx context.Context, client string, most int) (int, error)
	InUse(ctx context.Context, client string, most int) ([]notice.EndpointID, error)
}

// Sealer encrypts possible secrets of webhook URLs in the log, with a key derived from the
// vault's.
func Sealer(m payload.Master) (notice.Sealer, error) {
	seal, err := notice.NewSealer(m.Derive("webhook URLs"))
	var former []notice.Sealer
	for _, f := range m.Former() {
		if err == nil {
			var one notice.Sealer
			one, err = notice.NewSealer(f.Derive("webhook URLs"))
			former = append(former, one)
		}
	}
	return seal.After(former...), err
}

// TakeWebhooks lets a desk accept intents with webhooks, if webhooks are on.
func TakeWebhooks(d *intake.Desk, s settings.Webhooks, m payload.Master) error {
	if s.SecretsFile == "" {
		return nil
	}
	guard, err := webhook.NewGuard(s.Rules)
	if err != nil {
		return err
	}
	seal, err := Sealer(m)
	if err != nil {
		return err
	}
	d.Webhooks, d.Seal = intake.NewWebhookChecks(guard), &seal
	return nil
}

// notices delivers webhooks about intents.
type notices struct {
	settings settings.Webhooks
	in       *delivery.App
	rows     NoticeRows
	caller   webhook.Caller
	operator notifier.Operator
	metrics  *figures.Metrics
	data     int // most bytes of calls' inputs in a message
}

// newNotices returns nil when webhooks are off.
func newNotices(s settings.Webhooks, data int, in *delivery.App, tables Tables, ports Ports, m *figures.Metrics) (*notices, error) {
	if s.SecretsFile == "" {
		return nil, nil
	}
	seeds, err := ports.Seeds, error(nil)
	if seeds == nil {
		seeds, err = readSecrets(s.SecretsFile)
	}
	if err != nil {
		return nil, fmt.Errorf("webhooks.secrets-file: %w", err)
	}
	roots, err := readAuthorities(s.Authorities)
	if err != nil {
		return nil, fmt.Errorf("webhooks.authorities: %w", err)
	}
	n := &notices{settings: s, in: in, metrics: m, data: data}
	guard, err := webhook.NewGuard(s.Rules)
	if err != nil {
		return nil, err
	}
	sender, err := webhook.New(webhook.Options{
		Guard: guard, Timeout: s.Timeout, Roots: roots, Agent: "watchtower-relayer", Now: in.Ports.Now, Transport: ports.Transport,
	})
	if err != nil {
		return nil, err
	}
	seal, err := Sealer(in.Ports.Master)
	if err != nil {
		return nil, err
	}
	n.caller = webhook.Caller{Sender: sender, Seal: seal, Seeds: seeds}
	n.rows = tables.Notices(s.Policy())
	n.operator = notifier.Operator{
		Endpoints: notifier.Endpoints{Store: in.Store, Codec: notice.Codec(), Random: in.Ports.Random, Snapshots: wishSnapshots(in), Crash: in.Ports.Crash},
		Rows:      n.rows, Now: in.Ports.Now,
	}
	return n, nil
}

// wishSnapshots spare a command reading all earlier commands about its endpoint; nil when
// snapshots are off.
func wishSnapshots(in *delivery.App) *handler.Snapshots[notice.Wishes] {
	if in.Ports.Storage.Snapshots == nil || in.Settings.SnapshotsEvery == 0 {
		return nil
	}
	return notifier.Snapshots(in.Ports.Storage.Snapshots, func(stream eventlog.Stream, err error) {
		in.Ports.Log.Warn("a snapshot cannot be used, reading all events instead", "stream", stream, "err", err)
	})
}

func readSecrets(path string) ([]webhook.Secret, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return webhook.ParseSecrets(string(text))
}

// readAuthorities returns nil for the system's authorities.
func readAuthorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("the file has no certificate")
	}
	return roots, nil
}

// routes are the webhook dependencies of the API of intents; nil when webhooks are off.
func (n *notices) routes() *relayapi.Webhooks {
	if n == nil {
		return nil
	}
	return &relayapi.Webhooks{
		Rows: n.rows, Operator: n.operator, Endpoint: n.caller.Endpoint, Try: n.try,
		Secrets: func(id notice.EndpointID) (shown []string) {
			for _, s := range n.caller.Secrets(id) {
				shown = append(shown, s.Reveal())
			}
			return shown
		},
	}
}

// try sends a test message without content. Its id is not the id of any webhook delivery.
func (n *notices) try(ctx context.Context, id notice.EndpointID, url string) notice.Outcome {
	unique := make([]byte, 8)
	if _, err := io.ReadFull(n.in.Ports.Random, unique); err != nil {
		return notice.Outcome{Class: notice.Failed, Cause: notice.Unfit}
	}
	return n.caller.Try(ctx, id, url, "try_"+hex.EncodeToString(unique), n.in.Ports.Now())
}

// run delivers webhooks until ctx ends, and waits for all its goroutines.
func (n *notices) run(ctx context.Context) {
	if n == nil {
		return
	}
	worker, feeder := n.worker(), n.feeder()
	feeder.Fed = worker.Wake
	var running sync.WaitGroup
	running.Go(func() { n.in.Read(ctx, notifier.Reader, feeder.Run) })
	running.Go(func() { n.in.Owner().Own(ctx, depthLease, n.watchDepth) })
	running.Go(func() { worker.Run(ctx) })
	running.Go(func() { n.forget(ctx) })
	running.Wait()
	n.caller.Sender.Close()
}

func (n *notices) feeder() *notifier.Feeder {
	m := messages.New(n.in.Store, n.data)
	return &notifier.Feeder{
		Reader: notifier.Reader, Store: n.in.Store, Rows: n.rows, Checkpoints: n.in.Ports.Storage.Checkpoints,
		Sources: []notifier.Source{{Prefix: intent.StreamPrefix, News: m.News, Ahead: m.Ahead}},
		Wishes:  notice.Codec(), Crash: n.in.Ports.Crash, Log: n.in.Ports.Log,
		Moved: func(at eventlog.Position) { n.in.Moved(notifier.Reader, at) },
	}
}

// An attempt ends within its timeout plus a second, and within nine tenths of its lease.
const (
	leaseSpare = 5 * time.Second
	leaseParts = 4 // 1/leaseParts of the timeout is added for the last tenth
)

func (n *notices) worker() *notifier.Worker {
	return &notifier.Worker{
		Queue: n.rows, Holder: n.in.Settings.Holder, Send: n.send,
		Disabled: func(ctx context.Context, e notice.Endpoint) { n.operator.Record(ctx, e, n.in.Ports.Log) },
		Lease:    n.settings.Timeout + n.settings.Timeout/leaseParts + leaseSpare, Poll: n.settings.Poll, Slots: n.settings.Slots,
		Crash: n.in.Ports.Crash, Log: n.in.Ports.Log,
	}
}

func (n *notices) send(ctx context.Context, s notice.Sending) notice.Outcome {
	began := time.Now()
	o := n.caller.Call(ctx, s)
	n.noted(s, o, began)
	return o
}

// Old deliveries are deleted in batches of forgetMost, every forgetEvery.
const (
	forgetMost  = 1000
	forgetEvery = 10 * time.Minute
)

// forget deletes deliveries settled long ago. Several replicas may do so at once.
func (n *notices) forget(ctx context.Context) {
	for pause.For(ctx, forgetEvery) == nil {
		for ctx.Err() == nil {
			gone, err := n.rows.Forget(ctx, n.in.Ports.Now().Add(-n.settings.Keep), forgetMost)
			if err != nil {
				n.in.Ports.Log.Warn("old webhook deliveries not deleted", "err", err)
			}
			if err != nil || gone < forgetMost {
				break
			}
		}
	}
}
