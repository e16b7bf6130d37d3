package esdbtest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync"

	gossip "github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	features "github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// Options are the settings of [New] and [NewCluster]. A zero field takes the default given
// beside it.
type Options struct {
	// Address is host and port of the first node, a free port of 127.0.0.1 by default. If
	// it has a port, the other nodes take the ports that follow.
	Address string
	Data    *Data  // empty, in memory
	Version string // "24.10.0"
	// MaxAppendBytes limits one append; 1 MiB.
	MaxAppendBytes int
	// Silent leaves out CaughtUp, as servers before 23.10 do.
	Silent bool
	TLS    *tls.Config // nil: no TLS
	// User and Password, when set, are required of every call on events.
	User, Password string
	// Cluster says in which ways the nodes are as hard as a real server's. Kept, Keep and
	// StatsEvery are set here.
	Cluster esdbcluster.Settings
}

// Server is one node. It is safe for use by several goroutines.
type Server struct {
	streams.UnimplementedStreamsServer
	features.UnimplementedServerFeaturesServer

	options Options
	cluster *Cluster
	number  int // in the cluster, from 1

	mu      sync.Mutex
	address string
	grpc    *grpc.Server // nil while it is stopped
	running sync.WaitGroup
	trouble trouble
}

// New returns a single node that listens.
func New(o Options) (*Server, error) {
	o.Cluster.Nodes = 1
	c, err := NewCluster(o)
	if err != nil {
		return nil, err
	}
	return c.Nodes[0], nil
}

// Start listens, at the address that the node had before, and has the node run.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grpc != nil {
		return errors.New("the server runs")
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.address)
	if err != nil {
		return err
	}
	s.address = listener.Addr().String()
	var options []grpc.ServerOption
	if s.options.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.options.TLS)))
	}
	server := grpc.NewServer(append(options, grpc.MaxRecvMsgSize(maxMessage))...)
	streams.RegisterStreamsServer(server, s)
	features.RegisterServerFeaturesServer(server, s)
	gossip.RegisterGossipServer(server, gossiping{Server: s})
	s.grpc = server
	s.cluster.Model.Start(s.number)
	s.running.Go(func() { _ = server.Serve(listener) }) // ends with Stop
	return nil
}

// maxMessage is the largest message that the client receives.
const maxMessage = 17 << 20

// Stop kills the node: it breaks every connection and closes the listener. The node's log
// stays.
func (s *Server) Stop() {
	s.mu.Lock()
	server := s.grpc
	s.grpc = nil
	s.cluster.Model.Kill(s.number)
	s.mu.Unlock()
	if server != nil {
		server.Stop()
	}
	s.running.Wait()
}

// Address returns host and port.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// URL returns a URL that names this node alone.
func (s *Server) URL() string { return s.options.url(s.Address()) }

// url returns the URL of hosts.
func (o Options) url(hosts string) string {
	user := ""
	if o.User != "" {
		user = o.User + ":" + o.Password + "@"
	}
	return "esdb://" + user + hosts + "?tls=" + strconv.FormatBool(o.TLS != nil)
}

// Data returns the committed log.
func (s *Server) Data() *Data { return s.options.Data }

// GetSupportedMethods returns the version and the methods.
func (s *Server) GetSupportedMethods(context.Context, *shared.Empty) (*features.SupportedMethods, error) {
	return &features.SupportedMethods{EventStoreServerVersion: s.options.Version, Methods: []*features.SupportedMethod{
		{MethodName: "append", ServiceName: "event_store.client.streams.streams"},
		{MethodName: "read", ServiceName: "event_store.client.streams.streams", Features: []string{"position", "events"}},
	}}, nil
}

// gossiping is apart from Server because both have a method Read.
type gossiping struct {
	gossip.UnimplementedGossipServer
	*Server
}

// Read returns the members of the cluster as this node knows them.
func (g gossiping) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	info := &gossip.ClusterInfo{}
	for _, m := range g.cluster.Model.Members(g.number) {
		state := gossip.MemberInfo_Unknown
		switch m.State {
		case esdbcluster.Leader:
			state = gossip.MemberInfo_Leader
		case esdbcluster.Follower:
			state = gossip.MemberInfo_Follower
		}
		host, port := g.cluster.Nodes[m.Node-1].endpoint()
		info.Members = append(info.Members, &gossip.MemberInfo{
			State: state, IsAlive: m.State != esdbcluster.Dead, HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(port)},
		})
	}
	return info, nil
}

func (s *Server) endpoint() (host string, port uint16) {
	host, text, _ := net.SplitHostPort(s.Address())
	number, _ := strconv.ParseUint(text, 10, 16)
	return host, uint16(number)
}
