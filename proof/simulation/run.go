package simulation

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// Report is the result of a world.
type Report struct {
	Plan       Plan
	Trace      uint64        // always the same for the same plan
	Violations []string      // if not empty, the world shows a defect
	Simulated  time.Duration // with faults, and until all work had ended
	Requests   int           // clients' requests
	Retries    int           // clients' retries
	Events     int
	Sent       int // broadcasts that reached nodes
	Steps      int
	Lives      int // of replicas
	Faults     map[string]int
	Some       map[string]int
	Points     map[string]int // passes of crash points
	Judged     map[string]int // cases of each promise, as [promise.Cases] counts them
	Processor  time.Duration  // processor time of the run
	Notes      []string
	// Life is the victim's record in a twin world without hostile parties; Beside is the record
	// in the run with them.
	Life   promises.Life `json:",omitzero"`
	Beside promises.Life `json:",omitzero"`
}

// FaultCount is the number of injected faults.
func (r Report) FaultCount() (n int) {
	for _, count := range r.Faults {
		n += count
	}
	return n
}

const (
	quietMost  = 90 * time.Minute // until all windows have closed
	quietTicks = 30 * time.Second
	calmFirst  = 3 * time.Minute // after the faults, until deliveries are owed in time
)

// Run runs a world: first with faults, then without, until all work has ended; then it judges.
// It must run in a bubble of testing/synctest, on one processor.
//
// It writes the world's history to trace, unless trace is nil.
func Run(p Plan, log *slog.Logger, trace io.Writer) (Report, error) {
	w, err := newWorld(p, log)
	if err != nil {
		return Report{}, err
	}
	w.agenda.trace.out = trace
	for seat := range w.seats {
		w.start(seat)
	}
	w.cluster.begin()
	w.weather()
	w.clients()
	w.hostile.begin()
	if w.relayed() {
		w.wishes.begin()
		w.hooks.begin()
		w.tend()
	}
	for end := time.Duration(p.Hours * float64(time.Hour)); w.agenda.now() < end && w.sound(); {
		w.run(quietTicks)
		w.judge.tell(w.judge.promises.Tick(time.Now(), false))
	}
	quiet := w.heal()
	if w.sound() {
		w.finish(quiet)
	}
	report := w.report()
	return report, w.close()
}

func (w *world) sound() bool { return len(w.judge.violations) == 0 }

// heal ends all faults and waits until all work has ended.
func (w *world) heal() bool {
	w.healed, w.storeDown, w.load.stalled = true, 0, false
	w.hostile.end()
	w.crashes.disarm()
	if w.plan.Crowd.Gone {
		w.redisEra++ // its data is lost with it
	}
	w.market = 0
	w.chain.SetBaseFee(0)
	w.chain.StallFinality(false)
	w.chain.SetLeftOut(leftOut, false)
	for _, s := range w.load.senders {
		w.chain.SetBroke(s.address, false)
	}
	for _, s := range w.signers {
		w.chain.SetBroke(s.address, false)
	}
	w.hooks.heal()
	w.cluster.heal()
	for _, n := range w.nodes {
		n.down = 0
		n.fault.Forget, n.fault.WrongHash, n.fault.Phantom, n.fault.StaleNonces = 0, 0, false, 0
		n.fault.HighNonces, n.fault.Ahead, n.fault.Lag = 0, 0, 0
		n.node.Set(n.fault)
	}
	began := w.agenda.now()
	return w.runUntil(quietMost, func() bool {
		now := w.agenda.now()
		if now-began < calmFirst {
			w.judge.tell(w.judge.promises.Tick(time.Now(), false))
			return false
		}
		if int(now/time.Second)%int(quietTicks/time.Second) != 0 {
			return false
		}
		w.judge.tell(w.judge.promises.Tick(time.Now(), true))
		return w.load.fill() == 0 && w.idle()
	})
}

// idle reports whether every transaction has ended, and every reader has read the whole log.
func (w *world) idle() bool {
	depth, err := w.store.Depth(context.Background(), chainID)
	if err != nil {
		panic(err) // the store is open
	}
	if depth.Open+depth.Parked+depth.Announced > 0 {
		return false
	}
	if w.relayed() && len(w.lanes.unquiet())+len(w.hooks.unquiet()) > 0 {
		return false
	}
	return len(w.judge.behind()) == 0
}

// finish judges the promises that show only at the end.
func (w *world) finish(quiet bool) {
	ctx := context.Background()
	if !quiet {
		w.judge.fail("liveness", "%s after the trouble has ended not all is quiet: %s", quietMost, w.unquiet())
	}
	w.judge.tell(w.judge.promises.Finish(promises.End{
		Now: time.Now(), Quiet: true, Behind: time.Second,
		Queue: func(id chain.ID, hash chain.Hash) (tx.Work, bool) {
			rows, err := w.store.Find(ctx, id, []chain.Hash{hash})
			if err != nil || len(rows) == 0 {
				return tx.Work{}, false
			}
			return rows[0], true
		},
	}))
	w.judge.seals.finish()
	if w.relayed() {
		w.lanes.finish()
		w.hooks.finish()
	}
	if w.sound() {
		w.judge.views(ctx)
	}
	w.hooks.kept()
}

// unquiet describes the remaining work.
func (w *world) unquiet() string {
	depth, _ := w.store.Depth(context.Background(), chainID)  //nolint:errcheck // the store is open
	rows, _ := w.store.Soon(context.Background(), chainID, 3) //nolint:errcheck // likewise
	said := fmt.Sprintf("queue %+v, the soonest %+v, behind %v, lanes open %d", depth, rows, w.judge.behind(), w.load.fill())
	if w.relayed() {
		still := append(w.lanes.unquiet(), w.hooks.unquiet()...)
		said += fmt.Sprintf(", %d of the relay half: %v", len(still), still[:min(len(still), 5)])
	}
	return said
}

func (w *world) report() Report {
	w.cluster.count()
	return Report{
		Plan: w.plan, Trace: w.agenda.trace.sum, Violations: w.judge.violations, Simulated: w.agenda.now(),
		Requests: w.judge.requests, Retries: w.judge.retries, Events: w.judge.events, Sent: w.judge.sent,
		Steps: w.agenda.steps, Lives: w.lives, Faults: w.faults, Some: w.some, Points: w.crashes.counts(), Judged: w.judge.judged(), Notes: w.notes, Life: w.life.told(),
	}
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

// Sometimes lists the events and faults that must occur in at least one of many worlds;
// otherwise the faults are too weak to reveal anything.
func Sometimes(relayed bool) []string {
	if relayed {
		return sometimesRelayed()
	}
	all := []string{
		takenOver, appendedAgain, "un-mined, then mined again", "un-mined, then expired", "un-mined, then stale",
		rivalsMined, "mined after a cancel", "mined and reverted", rebuiltLive, redisLost, "client repeats",
		sealed, sealedAfterCrash, sealedFull,
	}
	for _, point := range points(false) {
		all = append(all, "crash at "+point)
	}
	for _, n := range judgedAlways() {
		all = append(all, caseOf(n))
	}
	return all
}

// Besetting lists the actions of hostile clients and pages that must occur in at least one of
// many worlds, and the promise that judges them.
func Besetting(relayed bool) []string {
	did := []string{
		"pays", "has a crowd become eligible", "leaves a gap", "forges claims", "sends odd encodings", "sends batches",
		"uses up idempotency keys", "listens", "lists", "lists another's groups", "reads another's transaction",
		"reads another's transaction by JSON-RPC", "waits for another's transaction", "cancels another's transaction",
		"cancels another's group", "withdraws",
	}
	if relayed {
		did = append(did, "asks for intents", "lists intents", "reads another's intent", "cancels another's intent",
			"speeds another's intent up", "disables another's webhook")
	}
	all := []string{"page: asks", caseOf(promises.P36)}
	for _, what := range did {
		all = append(all, "hostile: "+what)
	}
	return all
}

// Names of some of these events.
const (
	takenOver     = "takeover with a live zombie"
	appendedAgain = "append repeated, its acknowledgment was lost"
	rivalsMined   = "reorg that brings rivals"
	rebuiltLive   = "projection rebuild under load"
	redisLost     = "redis lost everything, and something was due"

	sealed           = "log sealed"
	sealedAfterCrash = "log sealed by another replica, after the crash of the notary"
	sealedFull       = "as much sealed as one seal may cover"
	sealedBefore     = "seal refused, another notary has sealed"
)

// ReportMark begins the output line with a world's report as JSON.
const ReportMark = "world: "
