package main_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// published is a Redis stream that forward fills.
type published struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // bounds the test
	client *redis.Client
	stream string
}

func newPublished(t *testing.T) *published {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	options, err := redis.ParseURL(testenv.Need(t, testenv.RedisVar))
	check(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() }) //nolint:errcheck // the test is over
	stream := "forward-" + testenv.Random(8)
	t.Cleanup(func() { client.Del(context.Background(), stream) })
	return &published{t, ctx, client, stream}
}

// run forwards from a store until want events are published. meanwhile runs concurrently.
func (p *published) run(want int64, meanwhile func(), store ...string) {
	p.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(p.ctx, program, append([]string{"forward", "--as", p.stream}, store...)...)
	cmd.Env = append(cmd.Environ(), "FORWARD_TO="+testenv.Need(p.t, testenv.RedisVar))
	cmd.Stderr = &stderr
	check(p.t, cmd.Start())
	meanwhile()
	for n := int64(0); n < want; {
		var err error
		if n, err = p.client.XLen(p.ctx, p.stream).Result(); err != nil {
			p.t.Fatalf("%d of %d are published: %v: %s", n, want, err, &stderr)
		}
	}
	check(p.t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		p.t.Fatalf("%v: %s", err, &stderr)
	}
}

// want compares the payloads: five of each stream, in order. There is no order between streams.
func (p *published) want(streams ...eventlog.Stream) {
	p.t.Helper()
	entries, err := p.client.XRange(p.ctx, p.stream, "-", "+").Result()
	check(p.t, err)
	var got, want []string
	for _, e := range entries {
		got = append(got, fmt.Sprint(e.Values["payload"]))
	}
	for _, s := range streams {
		for n := range 5 {
			want = append(want, string(happened(s, n)))
		}
	}
	stream := func(payload string) string { s, _, _ := strings.Cut(payload, ","); return s }
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(stream(a), stream(b)) })
	if !slices.Equal(got, want) {
		p.t.Errorf("published: %s, want %s", got, want)
	}
}

type appends interface {
	Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error)
}

// five appends five events to a new stream.
func (p *published) five(log appends, stream eventlog.Stream) {
	p.t.Helper()
	for n := range 5 {
		_, err := log.Append(p.ctx, stream, eventlog.Version(n), eventlog.Event{
			ID: eventlog.DeriveID(stream, eventlog.ID{}, n), Name: "test.happened.v1", Data: happened(stream, n),
		})
		check(p.t, err)
	}
}

func happened(s eventlog.Stream, n int) []byte { return fmt.Appendf(nil, `{"in":%q,"n":%d}`, s, n) }

// twice forwards while events are appended, and resumes where it stopped.
func (p *published) twice(log appends, store ...string) {
	for round := range 2 {
		p.run(int64(5*(round+1)), func() { p.five(log, eventlog.Stream(fmt.Sprintf("tx-%d", round))) }, store...)
	}
	p.want("tx-0", "tx-1")
}

// forward publishes the events of a store while another process writes it, and resumes where it
// stopped.
func TestForward(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	newPublished(t).twice(db.Log(), "--store", "embedded:"+dir)
}

// The same with the log in an event store, and the consumers' state in the database beside it.
func TestForwardFromAnEventStore(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	store := eventStore(t, t.TempDir())[:4]
	log, err := eventstoredb.Open(p.ctx, store[1], eventstoredb.Options{Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	t.Cleanup(func() { check(t, log.Close(context.Background())) })
	db, err := postgres.Open(p.ctx, store[3], postgres.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close(context.Background())) })
	check(t, db.Migrate(p.ctx))
	p.twice(log, store...)
	out, err := exec.CommandContext(p.ctx, program, append([]string{"consumers", "list"}, store...)...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "forward/all") || !strings.Contains(string(out), "nobody") {
		t.Errorf("%v: %s", err, out)
	}
}

// A consumer that is behind the archive gets an error, and goes on once the archive is
// configured.
func TestForwardFromTheArchive(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	dir, files := t.TempDir(), t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	p.five(db.Log(), "tx-0")
	p.five(db.Log(), "tx-1")
	segment, err := archive.NewFiles(archive.Dir(files), nil).Write(p.ctx, eventlog.ID{1}, 1, 6, db.Log().ReadAll(p.ctx, 0, eventlog.Filter{}, 100))
	check(t, err)
	check(t, db.Log().KeepSegment(p.ctx, segment))
	_, err = db.Log().Drop(p.ctx, 6, domain.Rule{{Prefix: "tx-"}})
	check(t, err)

	told := make(chan struct{})
	cmd := exec.CommandContext(p.ctx, program, "forward", "--as", p.stream, "--store", "embedded:"+dir)
	cmd.Env = append(cmd.Environ(), "FORWARD_TO="+testenv.Need(t, testenv.RedisVar))
	cmd.Stderr = &watched{text: "positions below 6 are in the archive", seen: told}
	check(t, cmd.Start())
	select {
	case <-told:
	case <-p.ctx.Done():
		t.Error("it did not say what is missing")
	}
	check(t, cmd.Process.Signal(syscall.SIGTERM))
	check(t, cmd.Wait())
	p.want()
	p.run(10, func() {}, "--store", "embedded:"+dir, "--archive", "file:"+files)
	p.want("tx-0", "tx-1")
}

// watched closes a channel when a text has been written.
type watched struct {
	text string
	seen chan struct{}
	all  []byte
	told bool
}

func (w *watched) Write(b []byte) (int, error) {
	if w.all = append(w.all, b...); !w.told && bytes.Contains(w.all, []byte(w.text)) {
		w.told = true
		close(w.seen)
	}
	return len(b), nil
}
