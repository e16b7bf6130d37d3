package eventstoredb

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/recent"
)

// Options are the settings of [Open]. A zero field takes the default given beside it.
type Options struct {
	// Patience is how long Open, and one try of a call, wait for a node that leads; 5 s.
	Patience time.Duration
	// CallLimit is how long one try waits for its answer; 10 s.
	CallLimit time.Duration
	// Limit is how long a call is tried, unless its context ends before; 30 s. A change of
	// leader takes one to two seconds.
	Limit time.Duration
	// MaxAppendBytes is the server's limit for one append (its MaxAppendSize); 1 MiB,
	// the default of servers before version 25.1.
	MaxAppendBytes int
	Random         io.Reader    // crypto/rand
	Logger         *slog.Logger // slog.DiscardHandler
	// Crash, when set, is called at each of [CrashPoints]: a test ends the process there.
	Crash func(point string)
}

// CrashPoints lists the places at which a test may end the process.
func CrashPoints() []string { return []string{beforeAppend, afterAppend} }

const (
	beforeAppend = "log.before-commit" // nothing is sent
	afterAppend  = "log.after-commit"  // the server has answered, nobody was told
)

// Limits on calls.
const (
	defaultPatience  = 5 * time.Second
	defaultMaxAppend = 1 << 20
	defaultCallLimit = 10 * time.Second
	defaultLimit     = 30 * time.Second
)

// Log is the event store. All its processes read and append through the cluster's leader.
type Log struct {
	server    Server
	limit     time.Duration // of a call with all its tries
	prefix    string
	maxAppend int
	random    io.Reader
	logger    *slog.Logger
	crash     func(point string)

	open  context.Context // ends when Close begins
	shut  context.CancelFunc
	mu    sync.Mutex
	ops   sync.WaitGroup // calls begun before Close; Add under mu
	drawn sync.Mutex     // random is not for several at once
	seen  seen
	once  sync.Once

	lookEvery time.Duration
	recent    *recent.Tail
	tailing   sync.Once
	running   sync.WaitGroup // the goroutine that fills recent
}

// Open connects to the cluster of an esdb:// or esdb+discover:// URL. An error that
// waiting may mend is waited for, as long as options have patience. No error shows the URL.
func Open(ctx context.Context, url string, o Options) (*Log, error) {
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.CallLimit <= 0 {
		o.CallLimit = defaultCallLimit
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	config, prefix, err := parse(url)
	if err != nil {
		return nil, fmt.Errorf("eventstoredb: %w", err)
	}
	l := New(newSupervisor(*config, o.Patience, o.CallLimit, o.Logger), prefix, o)
	if err := l.Ping(ctx); err != nil {
		l.Close(ctx) //nolint:errcheck,gosec // the first error is told
		return nil, err
	}
	return l, nil
}

// New returns the log in a server, whose streams' names begin with prefix.
func New(server Server, prefix string, o Options) *Log {
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	if o.MaxAppendBytes <= 0 {
		o.MaxAppendBytes = defaultMaxAppend
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	l := &Log{
		server: server, limit: o.Limit, prefix: prefix, maxAppend: o.MaxAppendBytes, random: o.Random,
		logger: o.Logger, crash: o.Crash, lookEvery: lookEvery, recent: recent.New(1),
	}
	l.open, l.shut = context.WithCancel(context.Background())
	return l
}

// Ping asks the leader for a sign of life, once.
func (l *Log) Ping(ctx context.Context) error {
	_, err := during(l, func() ([]*esdb.RecordedEvent, error) {
		return l.server.ReadAll(ctx, lastFirst(esdb.End{}), 1)
	})
	return err
}

// Close takes no more appends, waits for those under way, and ends subscriptions with
// eventlog.ErrClosed. When ctx ends first, those left are given up, as of unknown outcome.
// Close again does nothing.
func (l *Log) Close(ctx context.Context) (err error) {
	l.once.Do(func() {
		l.mu.Lock()
		l.shut()
		l.mu.Unlock()
		cut := context.AfterFunc(ctx, l.server.Kill)
		l.ops.Wait()
		l.running.Wait()
		if !cut() {
			err = fmt.Errorf("eventstoredb: closed before all calls had ended: %w", ctx.Err())
			return
		}
		err = l.server.Close(ctx)
	})
	return err
}

// during runs do unless the log is closed, and has Close wait for it.
func during[T any](l *Log, do func() (T, error)) (T, error) {
	l.mu.Lock()
	if l.open.Err() != nil {
		l.mu.Unlock()
		var none T
		return none, eventlog.ErrClosed
	}
	l.ops.Add(1)
	l.mu.Unlock()
	defer l.ops.Done()
	return do()
}

// seen is the log's end as far as this process knows: the last event of ours at or below a
// position.
type seen struct {
	mu          sync.Mutex
	upTo, event eventlog.Position
}

func (s *seen) get() (upTo, last eventlog.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.upTo, s.event
}

func (s *seen) note(upTo, last eventlog.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if upTo > s.upTo {
		s.upTo, s.event = upTo, last
	}
}

// maxVersion is the highest that a revision can express.
const maxVersion = math.MaxInt64
