package relayer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
)

// Lanes and Intents handle the commands of domain/lane and domain/intent.
type (
	Lanes   = commands.Handler[lane.State, lane.Command, lane.Event]
	Intents = commands.Handler[intent.State, intent.Command, intent.Event]
)

// Relayer is what all lanes of a chain have in common.
type Relayer struct {
	Chain        chain.ID
	Lanes        Lanes
	Intents      Intents
	Transactions commands.Transactions // only read here: what delivery has found out
	Vault        commands.Vault
	Queue        Queue
	Node         Chain
	Blocks       Blocks
	Fees         Fees
	Format       Format
	Delivery     Delivery
	News         *News
	Settings     Settings
	// Guard is asked before anything is signed. What may be live is delivered all the
	// same, whatever it says. nil allows everything, and counts nothing.
	Guard Guard
	// Holder names this run of this process, and no other ever: a random value.
	Holder string
	Now    func() time.Time
	Random io.Reader
	// Told, when set, is called after each turn of a lane that is worked on here, and when
	// it is not any more: for whoever counts, and never for effects.
	Told func(Turn)
	// Crash is called at the named points of [CrashPoints]; nil does nothing.
	Crash func(point string)
	Log   *slog.Logger
	// Purses holds the costs of the transactions in flight, which the chain's lanes share; if
	// it is nil each lane counts its own alone.
	Purses *Purses
}

// Settings are the numbers that may differ.
type Settings struct {
	Budget int           // nonces of a lane in flight at most
	AtOnce int           // signatures, or appends to intents, of a lane under way at once
	Claim  time.Duration // a claim of an intent that was not carried on lapses after so long
	Poll   time.Duration // look at the queue, and at the chain's blocks, at least so often
	Look   time.Duration // ask the chain which nonce it wants at least so often
	// Stall is for how long the first of the nonces that wait for the chain makes no
	// progress before it is signed for again, at a higher fee.
	Stall   time.Duration
	NoOpGas uint64 // of a call of nobody but the signer, with nothing
	// Confirmations is how many blocks are announced of an intent, its own counting as
	// the first, at most intent.ConfirmationsMax. Trusted is after how many of them it
	// has come out, before its block is final; 0 waits for that.
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
	Payer  Signer   // of sponsored intents; nil when there is none
	Pools  []string // that the signer belongs to
	// OnlyAsked keeps intents out that leave the nonce key to the relay: the lane runs because
	// some client asked for its key.
	OnlyAsked bool
}

// Turn is how a lane stands after a turn of its holder.
type Turn struct {
	Lane   chain.Sequence
	State  lane.State
	Budget int // nonces in flight at most
	// Drift is that of [lane.State.Drift], as of when the chain was asked last, and
	// without what has become known since.
	Drift int64
	// Stalled means that the first nonce that waits for the chain was found to stall.
	Stalled bool
	// Troubled means that something failed, of which the log is told, and that is tried again.
	Troubled bool
	Took     time.Duration
	// Over means that the lane is not worked on here any more: nothing else is said then.
	Over bool
}

func (r *Relayer) turned(t Turn) {
	if r.Told != nil {
		r.Told(t)
	}
}

// LeaseName is that of the lease under which a lane is worked on. The lease only spares
// two from trying: it is the lane's stream that lets one of them through.
func (l *Lane) LeaseName() string { return "relayer-" + string(lane.Stream(l.ID)) }

// CrashPoints lists the places in this package where a test may kill the process. Those
// of [commands.CrashPoints] lie between.
func CrashPoints() []string {
	return []string{
		"lane.opened",      // the lane is this holder's
		"budget.reserved",  // money is set aside, and no nonce is reserved
		"lane.reserved",    // intents have nonces, and do not know it
		"intents.assigned", // nothing is signed
		"attempts.signed",  // nothing is kept
		"attempts.kept",    // the lane does not know
		"lane.attempted",   // the intents do not know
		"intents.told",     // that there are attempts; nothing is handed to delivery
		"attempts.handed",  // delivery has them
		"intents.settled",  // they know what became of them, the lane does not
		"budget.settled",   // what it did cost is recorded, and the lane does not know
		"lane.settled",     // it does
	}
}

func (r *Relayer) crash(point string) {
	if r.Crash != nil {
		r.Crash(point)
	}
}

// origin makes the origin of a command.
func (r *Relayer) origin() (commands.Origin, error) {
	return commands.Begin(r.Random, event.Meta{Actor: lane.Actor})
}

// Run opens the lane and works on it until ctx ends, or somebody else has opened it
// (the error is lane.ErrFenced then), or nothing can be appended to the log. Other trouble
// is logged and tried again. It is the work of a [commands.Owner].
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

// opensMax is how often a lane is opened anew when somebody else has opened it meanwhile.
const opensMax = 3

// open makes this process the lane's holder.
func (l *Lane) open(ctx context.Context) (held commands.Result[lane.State], token lane.Token, err error) {
	stream := lane.Stream(l.ID)
	for range opensMax {
		if held, err = l.Lanes.Load(ctx, stream); err != nil {
			return held, 0, err
		}
		origin, err := l.origin()
		if err != nil {
			return held, 0, err
		}
		token = held.State.Token + 1
		opened, err := l.Lanes.HandleOnce(ctx, stream, held, lane.Open{Holder: l.Holder, Token: token, At: l.Now()}, origin)
		var conflict *event.ConflictError
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
