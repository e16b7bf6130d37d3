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

// Trouble is what a node does to its clients beside its work. Shares are of the calls,
// from 0 to 1.
type Trouble struct {
	Seed uint64
	// LoseReplies: an append takes effect, and its client is told that the node is
	// unavailable.
	LoseReplies float64
	// LoseAppends: the same, and it does not.
	LoseAppends float64
	// CutReads: a read or a subscription ends within its first messages, as unavailable.
	CutReads float64
	// Delays: a call waits for up to Delay before anything is done.
	Delays float64
	Delay  time.Duration
}

// Met counts what was done.
type Met struct{ LostReplies, LostAppends, CutReads, Delays, Strays int }

// trouble is what a node does from now on, and has done.
type trouble struct {
	mu   sync.Mutex
	now  Trouble
	draw *rand.Rand
	lose int // replies to appends, whatever the shares
	met  Met
	mute chan struct{} // closed when the subscriptions there are fall silent
}

// Trouble begins trouble; the zero value ends it.
func (s *Server) Trouble(t Trouble) {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	s.trouble.now, s.trouble.draw = t, rand.New(rand.NewPCG(t.Seed, t.Seed))
}

// LoseReplies loses the replies to the next n appends that take effect.
func (s *Server) LoseReplies(n int) {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	s.trouble.lose = n
}

// Mute has the subscriptions that there are sent nothing more. They do not end, and what
// begins later is not concerned.
func (s *Server) Mute() {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	close(s.trouble.mute)
	s.trouble.mute = make(chan struct{})
}

// muted is closed when what begins now is sent nothing more.
func (t *trouble) muted() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mute
}

// Met is what was done so far.
func (s *Server) Met() Met {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	return s.trouble.met
}

// happens draws whether something happens, and counts it.
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

// cutAfter is after how many messages a read is cut; never is below 0.
func (t *trouble) cutAfter() int {
	if !t.happens(func(n Trouble) float64 { return n.CutReads }, func(m *Met) *int { return &m.CutReads }) {
		return -1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.draw.IntN(20)
}

// delay waits, if a call is to.
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

// errAway is what a client sees of a node that went away.
var errAway = status.Error(codes.Unavailable, "the node is going away")

// notLeader is how a node answers that another leads; address says which.
func notLeader(host, port string) (error, metadata.MD) {
	return status.Error(codes.NotFound, "Leader info available"),
		metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port)
}
