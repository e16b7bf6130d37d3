package esdbtest

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// Cluster is the nodes of a cluster, each of them a server of its own.
type Cluster struct {
	Model *esdbcluster.Cluster // Resign is called here; Kill and Start leave the listeners alone
	Nodes []*Server            // node n is Nodes[n-1]
}

// statsEvery is the number of appends between two events that the server writes on its
// own, as a real one writes its statistics.
const statsEvery = 7

// NewCluster returns the nodes of a cluster, which listen. Node 1 leads.
func NewCluster(o Options) (*Cluster, error) {
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
	host, text, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	s := o.Cluster
	s.StatsEvery, s.Kept, s.Keep = statsEvery, o.Data.kept(), o.Data.keep
	c := &Cluster{Model: esdbcluster.New(s)}
	for i := range max(s.Nodes, 1) {
		at := port
		if port > 0 {
			at += uint64(i)
		}
		c.Nodes = append(c.Nodes, &Server{
			options: o, cluster: c, number: i + 1, address: net.JoinHostPort(host, strconv.FormatUint(at, 10)),
			trouble: trouble{mute: make(chan struct{})},
		})
	}
	for _, n := range c.Nodes {
		if err := n.Start(); err != nil {
			c.Stop()
			return nil, err
		}
	}
	return c, nil
}

// URL returns a URL that names all nodes.
func (c *Cluster) URL() string {
	hosts := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		hosts[i] = n.Address()
	}
	return c.Nodes[0].options.url(strings.Join(hosts, ","))
}

// Stop kills all nodes.
func (c *Cluster) Stop() {
	for _, n := range c.Nodes {
		n.Stop()
	}
}

// Resign has a node give up the lead. It breaks no connection.
func (c *Cluster) Resign(number int) error {
	if !c.Model.Resign(number) {
		return errors.New("the node does not lead")
	}
	return nil
}

// Lead makes a node its cluster's leader at once, without an election.
func Lead(leader *Server) { leader.cluster.Model.Lead(leader.number) }
