// Package esdbtest is a double of an EventStoreDB server: it speaks the protocol that
// EventStore-Client-Go v4 speaks, over real gRPC, and keeps events as a server does. It
// is not a server: it has one log in memory or in a plain file, no users, no replication
// and no index, and nobody has held it against a real one. It can do to a client what a
// network and a cluster do; see [Trouble].
//
// What it knows of the protocol is from the client's own .proto files and from the
// documentation of the server.
package esdbtest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	gossip "github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	features "github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Options are the settings of [New]. A zero field takes the default given beside it.
type Options struct {
	Address string // where it listens; a free port of 127.0.0.1
	Data    *Data  // may be another node's; empty, in memory
	Version string // "24.10.0"
	// MaxAppendBytes is what one append may hold; 1 MiB.
	MaxAppendBytes int
	// Silent leaves out that a subscription has caught up, as servers before 23.10 do.
	Silent bool
	TLS    *tls.Config // nil speaks without
	// User and Password, when set, must be given with every call on events.
	User, Password string
}

// Server is one node. It is safe for use by several goroutines.
type Server struct {
	streams.UnimplementedStreamsServer
	features.UnimplementedServerFeaturesServer

	options Options
	data    *Data
	address string

	mu      sync.Mutex
	grpc    *grpc.Server // nil while it is stopped
	running sync.WaitGroup
	trouble trouble
	leader  *Server // nil: this one
	members []*Server
}

// New makes a node that listens.
func New(o Options) (*Server, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Version == "" {
		o.Version = "24.10.0"
	}
	if o.MaxAppendBytes == 0 {
		o.MaxAppendBytes = 1 << 20
	}
	if o.Data == nil {
		o.Data = NewData(time.Now)
	}
	s := &Server{options: o, data: o.Data, address: o.Address, trouble: trouble{mute: make(chan struct{})}}
	s.members = []*Server{s}
	return s, s.Start()
}

// Start listens again, where it did before.
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
	s.running.Go(func() { _ = server.Serve(listener) }) // ends with Stop
	return nil
}

// maxMessage is what the client is ready to receive.
const maxMessage = 17 << 20

// Stop cuts every connection and listens no more. The data stay.
func (s *Server) Stop() {
	s.mu.Lock()
	server := s.grpc
	s.grpc = nil
	s.mu.Unlock()
	if server != nil {
		server.Stop()
	}
	s.running.Wait()
}

// Address is host and port.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// URL is for a client of this node alone.
func (s *Server) URL() string {
	user := ""
	if s.options.User != "" {
		user = s.options.User + ":" + s.options.Password + "@"
	}
	return "esdb://" + user + s.Address() + "?tls=" + strconv.FormatBool(s.options.TLS != nil)
}

// GetSupportedMethods tells a client the version.
func (s *Server) GetSupportedMethods(context.Context, *shared.Empty) (*features.SupportedMethods, error) {
	return &features.SupportedMethods{EventStoreServerVersion: s.options.Version, Methods: []*features.SupportedMethod{
		{MethodName: "append", ServiceName: "event_store.client.streams.streams"},
		{MethodName: "read", ServiceName: "event_store.client.streams.streams", Features: []string{"position", "events"}},
	}}, nil
}

// Cluster makes nodes, over the same data, a cluster led by the first.
func Cluster(nodes ...*Server) {
	for _, n := range nodes {
		n.mu.Lock()
		n.members = nodes
		n.mu.Unlock()
	}
	Lead(nodes[0])
}

// Lead makes a node its cluster's leader: the others refuse appends and name it.
func Lead(leader *Server) {
	leader.mu.Lock()
	members := leader.members
	leader.mu.Unlock()
	for _, n := range members {
		n.mu.Lock()
		if n.leader = leader; n == leader {
			n.leader = nil
		}
		n.mu.Unlock()
	}
}

// led is the leader, unless it is this node.
func (s *Server) led() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader
}

// gossip tells the members of the cluster, as this node knows them.
func (s *Server) gossip() *gossip.ClusterInfo {
	s.mu.Lock()
	members, leader := s.members, s.leader
	s.mu.Unlock()
	info := &gossip.ClusterInfo{}
	for _, m := range members {
		state := gossip.MemberInfo_Follower
		if m == leader || m == s && leader == nil {
			state = gossip.MemberInfo_Leader
		}
		host, port := m.endpoint()
		info.Members = append(info.Members, &gossip.MemberInfo{
			State: state, IsAlive: m.alive(), HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(port)},
		})
	}
	return info
}

func (s *Server) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grpc != nil
}

func (s *Server) endpoint() (host string, port uint16) {
	host, text, _ := net.SplitHostPort(s.Address())
	number, _ := strconv.ParseUint(text, 10, 16)
	return host, uint16(number)
}

// Data is what the server keeps.
func (s *Server) Data() *Data { return s.data }
