package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// judge checks a world's history against the promises.
type judge struct {
	world      *world
	promises   *promises.Judge
	seals      *seals
	decode     func(raw []byte) (chain.Signed, error)
	codec      eventlog.Codec[tx.Event]
	violations []string
	cases      promises.Cases // of the promises judged here

	requests, answered, retries int
	events, sent                int
	left                        map[chain.Hash]bool // replaced blocks
	final                       uint64              // the highest final block so far
	before                      map[eventlog.Stream]tx.Event
	unwanted                    map[eventlog.Stream]bool // canceled by their owners
}

func newJudge(w *world) *judge {
	j := &judge{world: w, decode: decodeOnce(), codec: tx.Codec(), left: map[chain.Hash]bool{}, before: map[eventlog.Stream]tx.Event{}, unwanted: map[eventlog.Stream]bool{}}
	p := w.plan
	clocks := time.Second
	if p.Store.Jump > 0 {
		clocks += storeSkewMost
	}
	if p.Crowd.Skew > 0 || p.Crowd.Jump > 0 {
		clocks += 2*p.Crowd.Skew + 2*time.Second
	}
	j.promises = promises.New(promises.Settings{
		Decode: j.decode, Chain: func(chain.ID) promises.Chain { return truth{j} },
		Grace: grace(p), Skew: clocks,
		Recovery: 2*time.Minute + 4*p.Block, Gap: 3*time.Minute + 4*p.Block, Rate: 20, Linked: true,
	})
	j.seals = newSeals(j)
	return j
}

// grace is the maximum time from a replica's last read of the log and the clock to the arrival
// of its request at a node: none, plus this world's delays.
func grace(p Plan) time.Duration {
	g := 2*time.Second + 10*(p.NodeDelay+p.StoreDelay)
	if p.Crowd.Pause > 0 {
		g += pauseMost(p)
	}
	if p.Store.Slow+p.Store.Hang > 0 || p.Store.Down > 0 || p.Link.Slow > 0 || p.Cluster.Nodes > 0 {
		g += p.WorkLease // an attempt's deadline
	}
	if p.Link.Slow > 0 {
		g += slowMost // on its way, also after the caller gave up
	}
	return g
}

// fail records a broken promise or another error.
func (j *judge) fail(what, format string, args ...any) {
	const most = 20
	if len(j.violations) < most {
		j.violations = append(j.violations, what+": "+fmt.Sprintf(format, args...))
	}
}

func (j *judge) tell(found []promises.Violation) {
	for _, v := range found {
		j.fail(v.Promise.String(), "%s%s", v, j.queued(v.Stream))
	}
}

// queued is a transaction's row in the due queue, for reports.
func (j *judge) queued(stream eventlog.Stream) string {
	id, hash, err := tx.ParseStream(stream)
	if err != nil {
		return ""
	}
	rows, err := j.world.store.Find(context.Background(), id, []chain.Hash{hash})
	if err != nil || len(rows) == 0 {
		return "; the due queue does not have it"
	}
	return fmt.Sprintf("; due queue, now %s: %+v", time.Now().UTC().Format(time.RFC3339Nano), rows[0])
}

// see judges an appended event.
func (j *judge) see(e eventlog.Recorded) {
	j.events++
	j.tell(j.promises.Event(e))
	j.seals.see(e)
	if j.world.lanes != nil {
		j.world.lanes.see(e)
	}
	j.world.hooks.see(e)
	_, _, err := tx.ParseStream(e.Stream)
	if err != nil {
		return
	}
	fact, err := j.codec.Decode(e.Name, e.Data)
	if err != nil {
		return // the promises report it
	}
	j.world.life.see(fact)
	j.notable(e.Stream, fact)
}

// notable counts the events that must happen in some world; otherwise the worlds are too calm.
func (j *judge) notable(s eventlog.Stream, fact tx.Event) {
	some := j.world.some
	switch e := fact.(type) {
	case tx.Mined:
		if _, after := j.before[s].(tx.Reorged); after {
			some["un-mined, then mined again"]++
		}
		if j.unwanted[s] {
			some["mined after a cancel"]++
		}
		if e.Receipt.Status == 0 {
			some["mined and reverted"]++
		}
	case tx.CanceledLocally:
		j.unwanted[s] = true
	case tx.Reorged:
		some["verdict withdrawn"]++
	case tx.Expired:
		if _, after := j.before[s].(tx.Reorged); after {
			some["un-mined, then expired"]++
		}
		some["expired"]++
	case tx.StaleByNonce:
		if _, after := j.before[s].(tx.Reorged); after {
			some["un-mined, then stale"]++
		}
		some["stale by nonce"]++
	case tx.FinalityViolated:
		j.fail("P11", "%s: finality violated: %+v", s, e)
	case tx.Broadcast, tx.Rejected, tx.Finalized, tx.Accepted:
	default:
		return // the event does not change the last verdict
	}
	j.before[s] = fact
}

// received judges a transaction that reached a node.
func (j *judge) received(d chaintest.Delivery) {
	j.sent++
	j.world.tenants.sent(d.Raw)
	j.world.life.sent(d.Raw)
	if j.world.lanes != nil {
		j.world.lanes.received(d)
	}
	j.tell(j.promises.Sent(promises.Sent{Chain: chainID, Node: d.Node, Raw: d.Raw, At: d.At, ChainTime: d.Head.Time}))
}

// taken judges an acknowledged acceptance.
func (j *judge) taken(r *wish, t *signed, hash chain.Hash) {
	if hash != t.hash {
		j.fail("P3", "%s was answered with %s", t.hash, hash)
	}
	c := promises.Call{Kind: promises.Submit, Chain: chainID, Hash: hash, Result: promises.OK, Began: r.began, Ended: time.Now()}
	if len(r.items) == 1 && r.key != "" && j.bound(r) {
		c.Key, c.Print = r.key, chain.Keccak(r.body)
	}
	j.tell(j.promises.Call(c))
	if t.at.IsZero() {
		t.at = time.Now()
	}
}

// bound reports whether the service still remembers the request of a key: it does for
// requestsKept, unless that data is lost.
func (j *judge) bound(r *wish) bool {
	return j.world.plan.Crowd.Lose == 0 && time.Since(r.first) < requestsKept/2
}

// canceled judges the answer to a group's cancel. It must include all members known to the
// client at its first try, and none of these may go on. A signature counts once: a retry covers
// no member that came after the first try.
func (j *judge) canceled(r *wish, out *recorder) {
	if out.status != http.StatusOK && out.status != http.StatusNotFound {
		return
	}
	for _, t := range r.items {
		if t.at.IsZero() || !t.at.Before(r.first) {
			continue
		}
		var s tx.State
		for e, err := range j.world.store.ReadStream(context.Background(), tx.Stream(chainID, t.hash), 0) {
			if err != nil {
				panic(err) // it is memory
			}
			if fact, err := j.codec.Decode(e.Name, e.Data); err == nil { // otherwise the promises report it
				s = s.Evolve(fact)
			}
		}
		if !s.Canceled && !s.Refused && s.Verdict == tx.StatusAbsent {
			j.fail("P23", "the cancel of its group was answered %d, and %s, taken before, is %s", out.status, t.hash, s.Status)
		}
	}
}

// read judges the JSON of a transaction.
func (j *judge) read(r *wish, out *recorder) {
	c := promises.Call{Kind: promises.Read, Chain: chainID, Hash: r.items[0].hash, Result: promises.OK, Began: r.began, Ended: time.Now()}
	switch out.status {
	case http.StatusNotFound:
		c.Missing = true
	case http.StatusOK:
		var shown struct {
			Status tx.Status `json:"status"`
		}
		if err := json.Unmarshal(out.body.Bytes(), &shown); err != nil {
			j.fail("answers", "a read was answered by %s", out.body.String())
			return
		}
		c.Status = shown.Status
	default:
		return
	}
	j.tell(j.promises.Call(c))
}

// truth is the actual chain.
type truth struct{ *judge }

func (t truth) At(number uint64) (chain.Block, bool) { return t.world.chain.Canonical(number) }

func (t truth) Receipt(hash chain.Hash) (chain.Receipt, bool) { return t.world.chain.Receipt(hash) }

func (t truth) Next(s chain.Sequence) (uint64, bool) { return t.world.chain.Nonce(s), true }

func (t truth) Final(b chain.Block) bool {
	at, ok := t.At(b.Number)
	return ok && at.Hash == b.Hash && b.Number <= t.final
}

func (t truth) Left(hash chain.Hash) bool { return t.left[hash] }

func (t truth) Executed() iter.Seq2[chain.Hash, chain.Receipt] {
	return func(yield func(chain.Hash, chain.Receipt) bool) {
		for hash := range t.world.chain.Executed() {
			receipt, ok := t.world.chain.Receipt(hash)
			if ok && !yield(hash, receipt) {
				return
			}
		}
	}
}

// moved records the chain's final block.
func (j *judge) moved() {
	final := j.world.chain.Final().Number
	if p := j.world.plan; p.Confirm {
		if head := j.world.chain.Head().Number; head > p.Finality {
			final = head - p.Finality
		}
	}
	j.final = max(j.final, final)
}
