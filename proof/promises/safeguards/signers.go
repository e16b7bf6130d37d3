package safeguards

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

type account struct {
	chain   chain.ID
	address chain.Address
}

// key is the judge's state of one signer.
type key struct {
	stance   string // the operator's last command: "paused", "draining", "drained"; empty: serving
	low      bool
	disabled bool
	idle     time.Time // since when it gets nothing new; zero while it does
	stopped  time.Time // since when it signs nothing; zero while it does
}

// why returns in one word the reason why a key is stopped.
func (k *key) why() string {
	switch {
	case k.disabled:
		return "disabled"
	case k.stance != "":
		return k.stance
	case k.low:
		return "low"
	}
	return "serving"
}

// since returns when a condition began to hold; zero if it does not hold.
func since(was time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case was.IsZero():
		return now
	}
	return was
}

// ofSigner follows the stops of a key. P34: only an operator resumes a disabled key.
func (j *Judge) ofSigner(r eventlog.Recorded) error {
	on, address, err := signer.ParseStream(r.Stream)
	if err != nil {
		return err
	}
	e, err := j.signer.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	k := j.signers[account{on, address}]
	if k == nil {
		if _, first := e.(signer.Registered); !first {
			j.broken(promises.P34, r, "%s of a key that was never registered", r.Name)
		}
		k = &key{}
		j.signers[account{on, address}] = k
	}
	switch e := e.(type) {
	case signer.Registered:
		j.by(r, e.Actor)
	case signer.Paused:
		k.stance = "paused"
		j.by(r, e.Actor)
	case signer.Draining:
		k.stance = "draining"
		j.by(r, e.Actor)
	case signer.Drained:
		if k.stance != "draining" {
			j.broken(promises.P34, r, "a key is drained that was not draining, but %s", k.why())
		}
		k.stance = "drained"
	case signer.Resumed:
		k.stance, k.disabled = "", false
		j.by(r, e.Actor)
	case signer.BalanceLow:
		if e.Balance.Cmp(e.Threshold) >= 0 {
			j.broken(promises.P34, r, "a balance of %s is called low, and %s is enough", e.Balance, e.Threshold)
		}
		k.low = true
	case signer.BalanceRestored:
		if e.Balance.Cmp(e.Threshold) < 0 {
			j.broken(promises.P34, r, "a balance of %s is called enough, and is below %s", e.Balance, e.Threshold)
		}
		k.low = false
	case signer.Disabled:
		k.disabled = true
	case signer.Recovered:
		if k.disabled {
			j.broken(promises.P34, r, "a key recovers by itself that was disabled")
		}
	case signer.ThresholdSet:
		j.by(r, e.Actor)
	case signer.ThresholdLearned, signer.Failed: // no effect on stops
	}
	if serves := !k.disabled && k.stance == ""; serves {
		j.lasted(promises.P34, k.stopped, r.At)
	}
	k.stopped = since(k.stopped, k.disabled || k.stance == "paused" || k.stance == "drained", r.At)
	k.idle = since(k.idle, k.why() != "serving", r.At)
	return nil
}

// by requires the actor's name.
func (j *Judge) by(r eventlog.Recorded, actor string) {
	if actor == "" {
		j.broken(promises.P34, r, "%s without an actor", r.Name)
	}
}

// lasted counts a stop that is over as a case if it lasted longer than Grace: a violation would
// have been seen.
func (j *Judge) lasted(n promises.Number, since, now time.Time) {
	if j.over(since, now) {
		j.cases.Add(n)
	}
}

// over reports whether a condition has held for longer than Grace.
func (j *Judge) over(since, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) > j.s.Grace
}

// takes checks P34: a key that does not serve gets nothing new.
func (j *Judge) takes(r eventlog.Recorded, of account) {
	switch k := j.signers[of]; {
	case k == nil:
		j.broken(promises.P34, r, "nonces of %s are assigned, which was never registered", of.address)
	case j.over(k.idle, r.At):
		j.broken(promises.P34, r, "nonces of %s are assigned, which is %s since %s", of.address, k.why(), k.idle.UTC().Format(time.RFC3339))
	}
}

// signs checks P34: a stopped key signs nothing.
func (j *Judge) signs(r eventlog.Recorded, of account, e lane.Attempted) {
	switch k := j.signers[of]; {
	case k == nil:
		j.broken(promises.P34, r, "%s is signed by %s, which was never registered", e.Hash, of.address)
	case j.over(k.stopped, r.At):
		j.broken(promises.P34, r, "%s is signed by %s, which is %s since %s", e.Hash, of.address, k.why(), k.stopped.UTC().Format(time.RFC3339))
	}
}
