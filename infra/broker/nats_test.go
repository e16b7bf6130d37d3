package broker_test

import (
	"net"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

// natsServer is a real NATS server with JetStream, from its module, in this process. It keeps
// its port and its streams across restarts.
type natsServer struct {
	t      testing.TB
	dir    string
	port   int
	server *nats.Server
}

func newNATS(t testing.TB) *natsServer {
	t.Helper()
	n := &natsServer{t: t, dir: t.TempDir(), port: nats.RANDOM_PORT}
	t.Cleanup(n.stop)
	n.start()
	return n
}

func (n *natsServer) start() {
	n.t.Helper()
	s, err := nats.NewServer(&nats.Options{
		Host: "127.0.0.1", Port: n.port, JetStream: true, StoreDir: n.dir, NoLog: true, NoSigs: true,
		JetStreamMaxMemory: 1 << 28, JetStreamMaxStore: 1 << 30,
	})
	must(n.t, err)
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		s.Shutdown()
		n.t.Fatal("NATS does not answer")
	}
	n.server, n.port = s, s.Addr().(*net.TCPAddr).Port
}

func (n *natsServer) stop() {
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
		n.server = nil
	}
}
