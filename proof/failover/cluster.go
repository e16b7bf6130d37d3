// Package failover changes the leader of an EventStoreDB cluster under load. Process tests of
// delivery and of the relay use it to show that a change of leader is only a delay.
package failover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// Cluster is a cluster whose nodes a test may kill and start.
type Cluster interface {
	// Status returns the nodes, and the URL of all nodes if the cluster knows it.
	Status(ctx context.Context) (Status, error)
	// Do runs a command on the node with a number.
	Do(ctx context.Context, command string, node int) error
}

// The commands on a node.
const (
	Kill   = "kill-node"
	Start  = "start-node"
	Resign = "resign" // the node, which leads, gives up the lead and stays alive
)

// Status is a cluster at one moment.
type Status struct {
	Nodes []Node
	URL   string // empty if unknown
}

// Node is a node of a cluster.
type Node struct {
	Number  int
	Address string
	State   string // leader, follower, or another word for a node that cannot serve
}

// leader returns the number of the node that leads, 0 if none does.
func (s Status) leader() int {
	for _, n := range s.Nodes {
		if n.State == "leader" {
			return n.Number
		}
	}
	return 0
}

// whole reports whether a node leads and all other nodes follow.
func (s Status) whole() bool {
	for _, n := range s.Nodes {
		if n.State != "leader" && n.State != "follower" {
			return false
		}
	}
	return s.leader() > 0
}

// Open returns the cluster that [testenv.ClusterVar] controls, or else a double of a three-node
// cluster with the faults observed on real servers, and a URL for clients. The test stops the
// double.
func Open(t *testing.T) (c Cluster, url string) {
	t.Helper()
	if command := os.Getenv(testenv.ClusterVar); command != "" {
		c, url = driven(command), os.Getenv(testenv.EventStoreVar)
	} else {
		double, err := esdbtest.NewCluster(esdbtest.Options{Cluster: esdbcluster.Hard(3)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(double.Stop)
		c = doubled{double}
	}
	status, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if url == "" {
		url = status.URL
	}
	if url == "" {
		t.Fatalf("set %s: %q status prints no esdb:// URL", testenv.EventStoreVar, os.Getenv(testenv.ClusterVar))
	}
	t.Logf("%d nodes: %v", len(status.Nodes), status.Nodes)
	return c, url
}

// driven is a shell command that controls a cluster.
type driven string

func (d driven) Status(ctx context.Context) (Status, error) {
	out, err := d.run(ctx, "status")
	if err != nil {
		return Status{}, err
	}
	return readStatus(out)
}

func (d driven) Do(ctx context.Context, command string, node int) error {
	_, err := d.run(ctx, command, strconv.Itoa(node))
	return err
}

// run runs the command with arguments. The shell splits and unquotes the command alone.
func (d driven) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", string(d) + ` "$@"`, "sh"}, args...)...) //nolint:gosec // the command is the user's
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", d, strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out.String(), nil
}

// readStatus reads lines "NUMBER HOST:PORT STATE", and an esdb:// URL in a line of its own.
func readStatus(out string) (s Status, err error) {
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case len(words) == 1 && strings.HasPrefix(words[0], "esdb"):
			s.URL = words[0]
		case len(words) == 3:
			n := Node{Address: words[1], State: strings.ToLower(words[2])}
			if n.Number, err = strconv.Atoi(words[0]); err != nil {
				return s, fmt.Errorf("status: the line %q does not begin with a node's number", line)
			}
			s.Nodes = append(s.Nodes, n)
		default:
			return s, fmt.Errorf("status: the line %q is not NUMBER HOST:PORT STATE", line)
		}
	}
	if len(s.Nodes) < 3 {
		return s, fmt.Errorf("status: %d nodes; a leader can only change among 3 or more", len(s.Nodes))
	}
	return s, nil
}

// doubled is a double of a cluster, in this process.
type doubled struct{ *esdbtest.Cluster }

func (d doubled) Status(context.Context) (Status, error) {
	s := Status{URL: d.URL()}
	for i, m := range d.Model.State() {
		s.Nodes = append(s.Nodes, Node{m.Node, d.Nodes[i].Address(), fmt.Sprint(m.State)})
	}
	return s, nil
}

func (d doubled) Do(_ context.Context, command string, node int) error {
	switch command {
	case Kill:
		d.Nodes[node-1].Stop()
		return nil
	case Start:
		return d.Nodes[node-1].Start()
	case Resign:
		return d.Resign(node)
	}
	return errors.New(command + " is not a command")
}
