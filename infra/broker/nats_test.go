package broker_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// natsServer is a real NATS server with JetStream. It keeps its address and its streams across
// restarts.
type natsServer struct {
	t      testing.TB
	server *server.NATS
}

func newNATS(t testing.TB) *natsServer {
	t.Helper()
	s, err := server.NewNATS(testenv.Need(t, testenv.NATSVar))
	must(t, err)
	t.Cleanup(func() { must(t, s.Remove()) })
	n := &natsServer{t: t, server: s}
	n.start()
	return n
}

func (n *natsServer) url() string { return n.server.URL() }

func (n *natsServer) start() {
	n.t.Helper()
	must(n.t, n.server.Start(n.t.Context()))
}

func (n *natsServer) stop() {
	n.t.Helper()
	must(n.t, n.server.Stop())
}
