package esdbtest_test

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	gossip "github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

const ms = time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client speaks to one node, without the client library.
type client struct {
	t *testing.T
	*grpc.ClientConn
	streams streams.StreamsClient
}

// started returns a cluster and a client of each node.
func started(t *testing.T, s esdbcluster.Settings) (*esdbtest.Cluster, []*client) {
	t.Helper()
	c, err := esdbtest.NewCluster(esdbtest.Options{Cluster: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	clients := make([]*client, len(c.Nodes))
	for i, n := range c.Nodes {
		conn, err := grpc.NewClient(n.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		clients[i] = &client{t, conn, streams.NewStreamsClient(conn)}
	}
	return c, clients
}

// call is the context of a call, with or without requires-leader.
func call(t *testing.T, requiresLeader bool) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	if requiresLeader {
		ctx = metadata.AppendToOutgoingContext(ctx, "requires-leader", "true")
	}
	return ctx
}

// append appends an event with the id n to the stream "s", which has n events.
func (c *client) append(requiresLeader bool, n, size int) (*streams.AppendResp, metadata.MD, error) {
	c.t.Helper()
	var trailer metadata.MD
	a, err := c.streams.Append(call(c.t, requiresLeader), grpc.Trailer(&trailer))
	if err != nil {
		c.t.Fatal(err)
	}
	o := &streams.AppendReq_Options{StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte("s")}}
	if o.ExpectedStreamRevision = (&streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}}); n > 0 {
		o.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: uint64(n - 1)}
	}
	var id [16]byte
	binary.BigEndian.PutUint64(id[8:], uint64(n+1))
	for _, m := range []*streams.AppendReq{
		{Content: &streams.AppendReq_Options_{Options: o}},
		{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
			Id: &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
				MostSignificantBits: int64(binary.BigEndian.Uint64(id[:8])), LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
			}}},
			Metadata: map[string]string{"type": "happened", "content-type": "application/json"}, Data: []byte(strings.Repeat("x", size)),
		}}},
	} {
		_ = a.Send(m) // CloseAndRecv returns the call's error
	}
	answer, err := a.CloseAndRecv()
	return answer, trailer, err
}

// read begins a read of the stream "s", or a subscription to the log from its end.
func (c *client) read(requiresLeader, subscribe bool) streams.Streams_ReadClient {
	c.t.Helper()
	o := &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte("s")},
			RevisionOption:   &streams.ReadReq_Options_StreamOptions_Start{Start: &shared.Empty{}},
		}},
		CountOption:  &streams.ReadReq_Options_Count{Count: 100},
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
	}
	if subscribe {
		o.StreamOption = &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{
			AllOption: &streams.ReadReq_Options_AllOptions_End{End: &shared.Empty{}},
		}}
		o.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
	}
	r, err := c.streams.Read(call(c.t, requiresLeader), &streams.ReadReq{Options: o})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// count returns the number of events that a read yields, and its error unless that is the
// regular end.
func count(r streams.Streams_ReadClient) (events int, err error) {
	for {
		m, err := r.Recv()
		switch {
		case err == io.EOF: //nolint:errorlint // gRPC's own, never wrapped
			return events, nil
		case err != nil:
			return events, err
		case m.GetEvent() != nil:
			events++
		}
	}
}

// is checks the status of an error.
func is(t *testing.T, what string, err error, code codes.Code, message string) {
	t.Helper()
	if s := status.Convert(err); s.Code() != code || !strings.Contains(s.Message(), message) {
		t.Errorf("%s: %v, want %s %q", what, err, code, message)
	}
}

// A follower serves reads and forwards appends, unless a call requires the leader.
func TestFollower(t *testing.T) {
	c, clients := started(t, esdbcluster.Settings{Nodes: 3, FollowerLag: esdbcluster.Range{Least: time.Hour}, Forward: true})
	if _, _, err := clients[1].append(false, 0, 1); err != nil {
		t.Fatal(err)
	}
	if n, err := count(clients[0].read(true, false)); n != 1 || err != nil {
		t.Errorf("the leader shows %d events: %v", n, err)
	}
	if n, err := count(clients[1].read(false, false)); n != 0 || err != nil {
		t.Errorf("the follower shows %d events: %v", n, err)
	}
	_, trailer, err := clients[1].append(true, 1, 1)
	is(t, "append", err, codes.NotFound, "Leader info available")
	host, port := trailer.Get("leader-endpoint-host"), trailer.Get("leader-endpoint-port")
	if len(host) != 1 || len(port) != 1 || host[0]+":"+port[0] != c.Nodes[0].Address() || trailer.Get("exception")[0] != "not-leader" {
		t.Errorf("%v names the leader %s", trailer, c.Nodes[0].Address())
	}
	for _, subscribe := range []bool{false, true} {
		r := clients[2].read(true, subscribe)
		_, err := count(r)
		is(t, "read", err, codes.NotFound, "Leader info available")
		if r.Trailer().Get("leader-endpoint-port")[0] != port[0] {
			t.Errorf("%v", r.Trailer())
		}
	}
}

// A node that is killed breaks its connections; a leader that resigns breaks none. Without
// a leader all calls are refused.
func TestLeaderLost(t *testing.T) {
	c, clients := started(t, esdbcluster.Settings{Nodes: 3, Election: esdbcluster.Range{Least: 100 * ms}})
	sub := clients[0].read(true, true)
	if _, err := sub.Recv(); err != nil { // its confirmation
		t.Fatal(err)
	}
	if err := c.Resign(1); err != nil {
		t.Fatal(err)
	}
	for _, client := range clients {
		_, _, err := client.append(true, 0, 1)
		is(t, "append in an election", err, codes.Unavailable, "Server Is Not Ready")
		_, err = count(client.read(false, false))
		is(t, "read in an election", err, codes.Unavailable, "Server Is Not Ready")
	}
	lead := awaitLeader(t, clients[0], 0)
	if _, _, err := clients[lead-1].append(true, 0, 1); err != nil || lead == 1 {
		t.Errorf("node %d leads: %v", lead, err)
	}
	for {
		m, err := sub.Recv()
		if err != nil {
			t.Fatalf("the subscription broke: %v", err)
		}
		if string(m.GetEvent().GetEvent().GetStreamIdentifier().GetStreamName()) == "s" {
			break
		}
	}
	killed := clients[lead-1].read(true, true)
	if _, err := killed.Recv(); err != nil {
		t.Fatal(err)
	}
	c.Nodes[lead-1].Stop()
	_, err := count(killed)
	is(t, "subscription to a killed node", err, codes.Unavailable, "")
	if next := awaitLeader(t, clients[0], lead); next == lead {
		t.Errorf("dead node %d leads", next)
	}
	if err := c.Nodes[lead-1].Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := count(clients[lead-1].read(false, false)); n != 1 || err != nil {
		t.Errorf("the restarted node shows %d events: %v", n, err)
	}
}

// awaitLeader returns the leader by a node's gossip, once there is one. A node may be dead.
func awaitLeader(t *testing.T, c *client, dead int) int {
	t.Helper()
	for ctx := call(t, false); ; {
		info, err := gossip.NewGossipClient(c).Read(ctx, &shared.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range info.GetMembers() {
			if m.GetIsAlive() == (i+1 == dead) {
				t.Fatalf("node %d, and node %d is dead: %v", i+1, dead, m)
			}
			if m.GetState() == gossip.MemberInfo_Leader {
				return i + 1
			}
		}
	}
}

// The commit timeout and the end of a slow subscription are both Aborted.
func TestAborted(t *testing.T) {
	_, clients := started(t, esdbcluster.Settings{
		CommitDelay: esdbcluster.Range{Least: 100 * ms}, CommitTimeout: 20 * ms,
	})
	_, _, err := clients[0].append(true, 0, 1)
	is(t, "late append", err, codes.Aborted, "Operation timed out: Commit phase timeout")

	const limit, events, size = 4, 30, 100_000 // far more than the buffers of gRPC
	_, clients = started(t, esdbcluster.Settings{SlowLimit: limit})
	sub := clients[0].read(true, true)
	for {
		m, err := sub.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetCaughtUp() != nil {
			break
		}
	}
	for n := range events {
		if _, _, err := clients[0].append(true, n, size); err != nil {
			t.Fatal(err)
		}
	}
	n, err := count(sub)
	is(t, "slow subscription", err, codes.Aborted, "Consumer too slow to handle event while live")
	if n >= events-limit {
		t.Errorf("it got %d of %d events", n, events)
	}
}
