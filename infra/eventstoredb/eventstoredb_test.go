package eventstoredb_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opener opens a log anew each time it is closed.
type opener struct {
	t   testing.TB
	url string
	o   eventstoredb.Options
	log *eventstoredb.Log
}

// open opens the log of a URL. The test closes it.
func open(t testing.TB, url string, o eventstoredb.Options) *opener {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	op := &opener{t: t, url: url, o: o}
	op.start()
	t.Cleanup(func() { op.close() }) //nolint:errcheck // the tests that care have looked
	return op
}

func (op *opener) start() {
	op.t.Helper()
	var err error
	if op.log, err = eventstoredb.Open(context.Background(), op.url, op.o); err != nil {
		op.t.Fatal(err)
	}
}

func (op *opener) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return op.log.Close(ctx)
}

// opened is the log as the contract takes it.
func (op *opener) opened() storetest.Opened[storetest.Log] {
	return storetest.Opened[storetest.Log]{
		Port:  op.log,
		Close: op.close,
		Reopen: func() storetest.Log {
			if err := op.close(); err != nil {
				op.t.Fatal(err)
			}
			op.start()
			return op.log
		},
	}
}

// double is a protocol double of a server. The test stops it.
func double(t testing.TB, o esdbtest.Options) *esdbtest.Server {
	t.Helper()
	s, err := esdbtest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// cluster is a protocol double of a cluster. The test stops it.
func cluster(t testing.TB, s esdbcluster.Settings) *esdbtest.Cluster {
	t.Helper()
	c, err := esdbtest.NewCluster(esdbtest.Options{Cluster: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

func TestStore(t *testing.T) {
	storetest.Store(t, func(t *testing.T) storetest.Opened[storetest.Log] {
		return open(t, double(t, esdbtest.Options{}).URL(), eventstoredb.Options{}).opened()
	})
}

// TestRealServer is the contract against a real server, which it shares with whoever
// else uses it: each case has a prefix of its own for its streams. The server's clock
// must agree with this machine's to a tenth of a second.
func TestRealServer(t *testing.T) {
	server := testenv.Offered(t, testenv.EventStoreVar)
	run := testenv.Random(6)
	storetest.Store(t, func(t *testing.T) storetest.Opened[storetest.Log] {
		return open(t, prefixed(t, server, "test-"+run+"."+t.Name()), eventstoredb.Options{}).opened()
	})
}

// prefixed is a server's URL for a log of its own.
func prefixed(t testing.TB, server, prefix string) string {
	t.Helper()
	join := "?"
	if strings.Contains(server, "?") {
		join = "&"
	}
	return server + join + "streamPrefix=" + url.QueryEscape(prefix+".")
}
