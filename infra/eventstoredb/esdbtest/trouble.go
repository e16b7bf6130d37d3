package esdbtest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Trouble is the faults of one node's network. Shares are of the calls, from 0 to 1.
type Trouble struct {
	Seed uint64
	// LoseReplies: an append is written, and its call ends as unavailable.
	LoseReplies float64
	// LoseAppends: an append is not written, and its call ends as unavailable.
	LoseAppends float64
	// CutReads: a read or a subscription ends within its first messages, as unavailable.
	CutReads float64
	// CancelReads: a read or a subscription ends with "Aborted: Request canceled by server".
	CancelReads float64
	// Delays: a call waits for up to Delay before it is served.
	Delays float64
	Delay  time.Duration
}

// Met counts the faults of one node so far. Strays are the calls that it refused because
// another node leads; Subscriptions are those that it confirmed.
type Met struct{ LostReplies, LostAppends, CutReads, CanceledReads, Delays, Strays, Subscriptions int }

// trouble is a node's faults from now on, and their counts.
type trouble struct {
	mu   sync.Mutex
	now  Trouble
	draw *rand.Rand
	lose int // number of replies to lose, beside the share
	met  Met
	mute chan struct{} // closed when the present subscriptions fall silent
}

// Trouble sets the faults from now on; the zero value ends them.
func (s *Server) Trouble(t Trouble) {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	s.trouble.now, s.trouble.draw = t, rand.New(rand.NewPCG(t.Seed, t.Seed))
}

// LoseReplies loses the replies to the next n appends.
func (s *Server) LoseReplies(n int) {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	s.trouble.lose = n
}

// Mute sends nothing more to the present subscriptions, and does not end them.
func (s *Server) Mute() {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	close(s.trouble.mute)
	s.trouble.mute = make(chan struct{})
}

// muted returns a channel that is closed when a subscription that begins now falls silent.
func (t *trouble) muted() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mute
}

// Met returns the counts so far.
func (s *Server) Met() Met {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	return s.trouble.met
}

// count adds one to a count.
func (t *trouble) count(which func(*Met) *int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*which(&t.met)++
}

// happens draws whether a fault happens, and counts it.
func (t *trouble) happens(share func(Trouble) float64, count func(*Met) *int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draw == nil || t.draw.Float64() >= share(t.now) {
		return false
	}
	*count(&t.met)++
	return true
}

// loseReply draws whether the reply to an append is lost.
func (t *trouble) loseReply() bool {
	t.mu.Lock()
	if t.lose > 0 {
		t.lose--
		t.met.LostReplies++
		t.mu.Unlock()
		return true
	}
	t.mu.Unlock()
	return t.happens(func(n Trouble) float64 { return n.LoseReplies }, func(m *Met) *int { return &m.LostReplies })
}

func (t *trouble) loseAppend() bool {
	return t.happens(func(n Trouble) float64 { return n.LoseAppends }, func(m *Met) *int { return &m.LostAppends })
}

// cancelRead draws whether the server cancels a read.
func (t *trouble) cancelRead() error {
	if t.happens(func(n Trouble) float64 { return n.CancelReads }, func(m *Met) *int { return &m.CanceledReads }) {
		return status.Error(codes.Aborted, "Request canceled by server")
	}
	return nil
}

// cutAfter draws the number of messages after which a read is cut; -1 means never.
func (t *trouble) cutAfter() int {
	if !t.happens(func(n Trouble) float64 { return n.CutReads }, func(m *Met) *int { return &m.CutReads }) {
		return -1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.draw.IntN(20)
}

// delay draws whether a call waits, and waits.
func (t *trouble) delay(ctx context.Context) error {
	if !t.happens(func(n Trouble) float64 { return n.Delays }, func(m *Met) *int { return &m.Delays }) {
		return nil
	}
	t.mu.Lock()
	wait := time.Duration(t.draw.Int64N(int64(t.now.Delay) + 1))
	t.mu.Unlock()
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// errAway ends the calls of a node that goes away.
var errAway = status.Error(codes.Unavailable, "the node is going away")

// notLeaderStatus is the answer of a follower to a call that requires the leader; the
// trailer says where the leader is.
func notLeaderStatus(host, port string) (error, metadata.MD) {
	return status.Error(codes.NotFound, "Leader info available"),
		metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port)
}
