package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Lanes and Intents handle the commands of domain/relay/lane and domain/relay/intent.
type (
	Lanes   = handler.Handler[lane.State, lane.Command, lane.Event]
	Intents = handler.Handler[intent.State, intent.Command, intent.Event]
)

// Relayer is the configuration that all lanes of a chain share.
type Relayer struct {
	Chain        chain.ID
	Lanes        Lanes
	Intents      Intents
	Transactions commands.Transactions // only read here: delivery's results
	Vault        commands.Vault
	Queue        Queue
	Node         Chain
	Blocks       Blocks
	Fees         Fees
	Format       Format
	Delivery     Delivery
	News         *News
	Settings     Settings
	// Guard is asked before anything is signed. Attempts that may be live are delivered
	// even if it refuses. nil allows everything and counts nothing.
	Guard Guard
	// Holder names this run of this process, and is never reused: a random value.
	Holder string
	Now    func() time.Time
	// Told, when set, is called after each turn of a lane that this process works on, and
	// when the work ends. It is for metrics, never for effects.
	Told func(Turn)
	// Crash is called at the named points of [CrashPoints]; nil does nothing.
	Crash func(point string)
	Log   *slog.Logger
	// Purses holds the costs of transactions in flight, shared by the chain's lanes. If
	// nil, each lane counts its own only.
	Purses *Purses
}

// Settings are the relay's tunable limits and intervals.
type Settings struct {
	Budget int           // most nonces of a lane in flight
	AtOnce int           // most concurrent signatures of a lane, and appends to intents
	Claim  time.Duration // lifetime of a claim of an intent that does not continue
	Poll   time.Duration // longest interval between reads of the queue and of the chain's blocks
	Look   time.Duration // longest interval between asking the chain for the nonce it wants
	// Stall is how long the first waiting nonce may make no progress before it is signed
	// again at a higher fee.
	Stall   time.Duration
	NoOpGas uint64 // gas limit of an empty call to the signer itself
	// Confirmations is the number of blocks announced per intent, its own block included,
	// at most intent.ConfirmationsMax. Trusted is the number of confirmations that complete
	// an intent before its block is final; 0 waits for finality.
	Confirmations int
	Trusted       int
}

// DefaultSettings suit a chain with a block a second.
func DefaultSettings() Settings {
	return Settings{
		Budget: 100, AtOnce: 16, Claim: 10 * time.Second, Poll: time.Second, Look: time.Minute,
		Stall: 30 * time.Second, NoOpGas: 100_000, Confirmations: 1,
	}
}

// Lane is one signer's sequence of nonces on a chain, to be worked on.
type Lane struct {
	*Relayer
	ID     chain.Sequence
	Signer Signer
	Payer  Signer   // pays for sponsored intents; nil: nobody
	Pools  []string // pools that the signer belongs to
	// OnlyAsked excludes intents that leave the nonce key to the relay: the lane runs
	// because a client asked for its key.
	OnlyAsked bool
	// Behalf returns the chain as read in the name of a client, with the client's share of calls
	// to nodes. nil: the lane reads in the service's own name.
	Behalf func(client string) Chain
	Client string // the lane reads in this client's name until it knows its intents
}

// Turn is the state of a lane after a turn of its holder.
type Turn struct {
	Lane   chain.Sequence
	State  lane.State
	Budget int // most nonces in flight
	// Drift is [lane.State.Drift] as of the chain's last answer, less the drift explained
	// since.
	Drift int64
	// Stalled means that the first nonce that waits for the chain stalls.
	Stalled bool
	// Troubled means that a step failed. The error is logged and the step retried.
	Troubled bool
	Trouble  string // the error, cut at toldMax bytes
	Took     time.Duration
	// Over means that this process has stopped working on the lane; only Lane is set then.
	Over bool
}

func (r *Relayer) turned(t Turn) {
	if r.Told != nil {
		r.Told(t)
	}
}

// LeaseName returns the name of the lease under which a lane is worked on. The lease only
// saves duplicate work; the lane's stream decides between two holders.
func (l *Lane) LeaseName() string { return "relayer-" + string(lane.Stream(l.ID)) }

// CrashPoints lists the places in this package where a test may kill the process. The
// places of [commands.CrashPoints] lie between.
func CrashPoints() []string {
	return []string{
		"lane.opened",      // the lane is this holder's
		"budget.reserved",  // budget is reserved, and no nonce
		"lane.reserved",    // intents have nonces in the lane, not yet recorded with the intents
		"intents.assigned", // recorded with the intents, nothing signed
		"attempts.signed",  // signed, bytes not stored
		"attempts.kept",    // bytes stored, not recorded in the lane
		"lane.attempted",   // recorded in the lane, not with the intents
		"intents.told",     // recorded with the intents, nothing handed to delivery
		"attempts.handed",  // handed to delivery
		"intents.settled",  // results recorded with the intents, not in the lane
		"budget.settled",   // cost recorded, result not recorded in the lane
		"lane.settled",     // result recorded in the lane
	}
}

func (r *Relayer) crash(point string) {
	if r.Crash != nil {
		r.Crash(point)
	}
}

// byLane is the origin of a lane's commands.
func byLane() eventlog.Meta { return eventlog.Meta{Actor: lane.Actor} }

// aboutIntent is the metadata of a lane's events about an intent: they belong to the request that
// caused the intent, and to its trace.
func aboutIntent(it intent.State) eventlog.Meta { return it.Requested.Origin.Meta(lane.Actor) }

// Run opens the lane and works on it until ctx ends, another process opens it
// (lane.ErrFenced), or the log cannot be appended to. It logs and retries other errors. It
// is the work of a lease.Owner.
func (l *Lane) Run(ctx context.Context) error {
	if err := l.News.begun(ctx); err != nil {
		return err
	}
	box := l.News.open()
	defer l.News.close(box)
	held, token, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer l.turned(Turn{Lane: l.ID, Over: true})
	defer l.Purses.drop(l.ID)
	return newActor(l, held, token, box).run(ctx)
}

// opensMax is how often opening a lane is tried while others open it too.
const opensMax = 3

// open makes this process the lane's holder.
func (l *Lane) open(ctx context.Context) (held handler.Result[lane.State], token lane.Token, err error) {
	stream := lane.Stream(l.ID)
	for range opensMax {
		if held, err = l.Lanes.Load(ctx, stream); err != nil {
			return held, 0, err
		}
		token = held.State.Token + 1
		opened, err := l.Lanes.DoOnce(ctx, stream, held, lane.Open{Holder: l.Holder, Token: token, At: l.Now()}, byLane())
		var conflict *eventlog.ConflictError
		if errors.As(err, &conflict) {
			continue
		}
		if err == nil {
			l.crash("lane.opened")
		}
		return opened, token, err
	}
	return held, 0, fmt.Errorf("%s was opened by others %d times", stream, opensMax)
}
