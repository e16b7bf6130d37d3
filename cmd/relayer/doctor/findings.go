package doctor

import (
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/signer"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

func one(code, says, next, do string) []Finding { return []Finding{{code, says, next, do}} }

func chainUnknown(f Facts) []Finding {
	if f.NodeErr == nil {
		return nil
	}
	return one("chain-unknown", fmt.Sprintf("The chain does not say which nonce it wants: %v.", f.NodeErr),
		"What was signed is sent as soon as endpoints answer; no new nonce is handed out before as many agree as have to.",
		"Look at the endpoints of the chain.")
}

// unheld reports a lane without a working holder.
func unheld(f Facts) []Finding {
	switch {
	case f.Lane.Token == 0:
		return one("never-opened", "Nobody has ever worked on this lane.",
			"A relayer that has the signer's key opens it when it starts; a lane of another nonce key when an intent asks for it.",
			"Start a relayer with the key, or look at signers.allowed and lane.formats if one runs.")
	case f.Lease.Unknown != "":
		return one("lease-unknown", fmt.Sprintf("It is not known who has the lane's lease, which is in %s: %s.", f.Lease.Where, f.Lease.Unknown), "", "")
	case f.Lease.Runs:
		return nil
	case !f.ID.Key.IsZero() && f.Lane.InFlight() == 0:
		return nil // it is released when no intent asks for it
	}
	return one("not-held", fmt.Sprintf("Nobody holds the lane: its last holder opened it at %s, and its lease, which was looked for in %s, does not run.", stamp(f.Opened), f.Lease.Where),
		"What was signed is delivered all the same by any replica; nothing new is signed, bumped or settled until a relayer with the key runs.",
		"Start a relayer that has the key of "+f.ID.Sender.String()+". If one runs, see whether its lane.leases, and what they are kept in, are those of this configuration.")
}

// held reports obstacles to all signing.
func held(f Facts) (all []Finding) {
	s := f.Signer
	why := s.Stance.Reason
	if why != "" {
		why = ": " + why
	}
	by := fmt.Sprintf("by %s%s", s.Stance.Actor, why)
	resume := fmt.Sprintf("relayer signers resume %s %s --reason …", f.ID.Chain, f.ID.Sender)
	switch status := s.Status(); status {
	case signer.StatusPaused, signer.StatusDrained:
		all = append(all, Finding{"signer-" + string(status), fmt.Sprintf("The signer is %s, %s: it signs nothing, neither bumps nor no-ops.", status, by),
			"What was signed before is delivered.", resume})
	case signer.StatusDraining:
		all = append(all, Finding{"signer-draining", "The signer is draining, " + by + ": it finishes what it has, and takes nothing new.", "It is drained when it has nothing left.", resume})
	case signer.StatusDisabled:
		all = append(all, Finding{"signer-disabled", fmt.Sprintf("The signer is disabled after %d failures of whoever has its key.", len(s.Failures)),
			"Nothing is signed until an operator resumes it; intents of a pool go to its others.", "Mend what has the key, then " + resume})
	case signer.StatusLow:
		all = append(all, Finding{"signer-low", fmt.Sprintf("The signer has %s, less than the %s that it serves with.", amount(f.Balance), s.Threshold),
			"It finishes what it has, takes nothing new, and serves again by itself with a tenth more than that.", "Give it money."})
	case signer.StatusUnknown:
		all = append(all, Finding{"signer-unknown", "Nobody has registered the signer on this chain.", "A relayer that has its key does so when it starts.", ""})
	}
	if err := f.Switches.CheckNoOp(f.ID.Chain); err != nil {
		all = append(all, Finding{"halted", fmt.Sprintf("A switch keeps anything from being signed: %v.", err), "What was signed before is delivered.",
			fmt.Sprintf("relayer safeguards resume --reason …, or with --chain %s, of the same scope", f.ID.Chain)})
	}
	return append(all, f.spent()...)
}

// cursor reports nonces that another sender used, or that were skipped.
func cursor(f Facts) []Finding {
	if f.NodeErr != nil || f.Lane.Token == 0 {
		return nil
	}
	wants, next := f.Witness.Nonce, f.Lane.Next
	gap := f.Lane.Gap(wants)
	switch {
	case !f.Lane.Known:
		return one("nonce-unknown", fmt.Sprintf("The lane has not learned where it begins; the chain wants nonce %d.", wants),
			"Its holder takes that over when as many endpoints agree as have to.", "")
	case wants > next:
		return one("external-use", fmt.Sprintf("The chain wants nonce %d, and the cursor is at %d: %s used by transactions that were not made here. Somebody else has the key.", wants, next, span(next, wants)),
			fmt.Sprintf("The lane's holder looks every %s, or when a nonce stalls, and goes on from %d: no intent is lost, and no nonce is handed out twice.", f.Rules.Look, wants),
			"Find out who else signs with this key.")
	case gap.First < gap.End:
		return one("jumped-over", fmt.Sprintf("The chain wants nonce %d, which the cursor had jumped over, on the word of endpoints that has proved wrong: %s free, and nothing above them can land.", wants, span(gap.First, gap.End)),
			"The lane's holder opens them again at its next look, gives them to intents, and fills with no-ops what nobody wants.", "")
	case f.Regressed():
		return one("chain-went-back", fmt.Sprintf("The chain wants nonce %d, which this lane has closed as used by a final block: the chain has lost final blocks, or endpoints serve another one.", wants),
			"Nothing of it is signed again by itself: the lane goes on from its cursor, and what it signs cannot land before the chain has caught up.",
			"Look at the endpoints of the chain. If final blocks are really lost, what they held has to be asked for again.")
	}
	return nil
}

// Regressed reports whether the chain's next nonce is no longer open.
func (f Facts) Regressed() bool {
	_, open := f.Lane.Slot(f.Witness.Nonce)
	gap := f.Lane.Gap(f.Witness.Nonce)
	return !open && gap.First == gap.End && f.Lane.Known && f.Witness.Nonce < f.Lane.Next
}

// holes reports nonces without an attempt, below nonces with an attempt.
func holes(f Facts) (all []Finding) {
	for _, h := range f.holes() {
		switch {
		case h.Intent.IsZero():
			all = append(all, Finding{"hole-free", fmt.Sprintf("Nonce %d was given back, and nonces above it are signed for: these cannot land before it is used.", h.Nonce),
				"The lane's holder fills it with a no-op by itself, unless something above keeps it from signing.", ""})
		default:
			all = append(all, f.heldHole(h))
		}
	}
	return all
}

// heldHole explains why an intent with a nonce has no attempt.
func (f Facts) heldHole(h Hole) Finding {
	it := f.Intents[h.Intent]
	why := "it is not known why"
	switch {
	case it.Place == nil:
		why = "it has not been told of it yet"
	case it.Stop.Reason != "":
		why = "it is to end: " + string(it.Stop.Reason)
	default:
		if f.MarketErr != nil {
			why = "what gas costs is not known: " + f.MarketErr.Error()
		} else if _, err := f.Rules.Policy.Offer(f.Market, f.terms(it)); errors.Is(err, fee.ErrMarket) {
			why = fmt.Sprintf("it may not pay what gas costs now (%v)", err)
		} else if err != nil {
			why = err.Error()
		} else if it.Requested.Request.Gas.Limit == 0 {
			why = "no node has said how much gas it takes"
		}
	}
	found := Finding{
		Code: "hole-held", Says: fmt.Sprintf("Nonce %d is held by the intent %s since %s, and nothing is signed for it: %s. Nonces above it are signed for, and cannot land before it is used.", h.Nonce, h.Intent, stamp(h.Since), why),
		Next: "It is signed for as soon as that has passed; until then it waits, and all above it wait with it.",
	}
	if h.Fill != nil {
		found.Do = fmt.Sprintf("relayer doctor --fill has the intent give nonce %d back, which a no-op uses up; the intent gets another one later. Or relayer intents cancel %s.", h.Nonce, h.Intent)
	} else {
		found.Do = fmt.Sprintf("It cannot be filled: %s. relayer intents cancel %s ends the intent, and a no-op takes its nonce.", h.Why, h.Intent)
	}
	return found
}

// front reports on the first nonce that waits for the chain.
func front(f Facts) []Finding {
	slot, waits := Front(f.Lane)
	if !waits || len(slot.Attempts) == 0 {
		return nil
	}
	last := slot.Attempts[len(slot.Attempts)-1]
	t := f.Txs[last.Hash]
	used := f.NodeErr == nil && f.Witness.Nonce > slot.Nonce
	switch {
	case f.any(slot, func(t Tx) bool { return t.Violated }):
		return one("contradicted", fmt.Sprintf("The chain contradicts what it had finally said about nonce %d.", slot.Nonce),
			"The nonce is left to an operator: nothing is signed for it any more.", "Compare the endpoints with others, and decide by hand: watchtower audit show tells what was recorded.")
	case f.any(slot, func(t Tx) bool { return t.Verdict == tx.StatusExecuted }):
		return nil // the lane learns of it
	case used && f.any(slot, func(t Tx) bool { return t.Verdict == tx.StatusStale }):
		return one("external-use-of-open", fmt.Sprintf("Nonce %d is used, and by none of the %d attempts that were made here: somebody else has the key.", slot.Nonce, len(slot.Attempts)),
			"When the block is final the nonce is recorded as lost, and its intent gets another one.", "Find out who else signs with this key.")
	case t.Last != nil && t.Last.Cause == tx.Funds:
		return one("lacks-funds", fmt.Sprintf("Nodes do not take the attempt at nonce %d: the signer, which has %s, cannot pay for it.", slot.Nonce, amount(f.Balance)),
			"It is sent again and again, and lands when there is enough; what comes after it waits.", "Give "+f.ID.Sender.String()+" money.")
	}
	return f.stuck(slot, last, t)
}

func (f Facts) any(slot lane.Slot, is func(Tx) bool) bool {
	for _, made := range slot.Attempts {
		if is(f.Txs[made.Hash]) {
			return true
		}
	}
	return false
}

// stuck reports an attempt that is not mined though it is valid.
func (f Facts) stuck(slot lane.Slot, last lane.Made, t Tx) (all []Finding) {
	waits := f.Now.Sub(last.At).Round(time.Second)
	again := ""
	if !t.NextAt.IsZero() {
		again = fmt.Sprintf(" at %s", stamp(t.NextAt))
	}
	if t.Known != nil && !*t.Known && t.Status != tx.StatusAbsent {
		all = append(all, Finding{"dropped", fmt.Sprintf("No node that was asked has the attempt at nonce %d, %s: it was dropped.", slot.Nonce, last.Hash),
			"Delivery sends the same bytes again" + again + ". They are never signed again, and no other nonce is used instead.", ""})
	}
	if t.Last != nil {
		all = append(all, Finding{"refused-by-nodes", fmt.Sprintf("Nodes last refused the attempt at nonce %d: %s %s.", slot.Nonce, t.Last.Class, t.Last.Reason),
			"Delivery sends it again" + again + ".", ""})
	}
	_, dear := f.again(slot)
	low := f.BaseFee != nil && last.Fee.MaxFee.Int().Lt(f.BaseFee.Int())
	over := f.Rules.Stall > 0 && waits > f.Rules.Stall
	if over && !f.any(slot, func(t Tx) bool { return t.Status != tx.StatusAbsent }) {
		return unsent(slot, last, dear)
	}
	if low {
		next := fmt.Sprintf("After %s without progress it is signed for again at a higher fee.", f.Rules.Stall)
		do := ""
		if errors.Is(dear, fee.ErrCeiling) || errors.Is(dear, fee.ErrMarket) {
			next, do = "It cannot be bumped under the ceiling: it waits for the base fee to come down.", "Raise fee.ceiling and restart, or wait."
		}
		all = append(all, Finding{"underpriced", fmt.Sprintf("The attempt at nonce %d offers %s for a unit of gas, less than the next block's base fee, %s.", slot.Nonce, last.Fee.MaxFee, f.BaseFee), next, do})
	}
	most := lane.AttemptsMax
	if !last.Intent.IsZero() {
		most = lane.BumpsMax
	}
	if len(slot.Attempts) >= most {
		all = append(all, Finding{"attempts-spent", fmt.Sprintf("Nonce %d has %d attempts, and gets no more.", slot.Nonce, len(slot.Attempts)), "Any of them may still land. The last few are kept for no-ops: one takes the place of an intent that is canceled.", ""})
	} else if over && len(all) == 0 {
		next := "It is bumped at the next look of the lane's holder."
		if dear != nil {
			next = fmt.Sprintf("It cannot be bumped now: %v.", dear)
		}
		all = append(all, Finding{"stalled", fmt.Sprintf("The attempt at nonce %d has waited for %s, longer than lane.stall, %s.", slot.Nonce, waits, f.Rules.Stall), next,
			"Look whether the chain makes blocks, and whether endpoints pass transactions on."})
	}
	return all
}

// unsent reports attempts that delivery does not have.
func unsent(slot lane.Slot, last lane.Made, dear error) []Finding {
	next, do := "The lane's holder signs for it again, or has a no-op use it up, unless something above keeps it from signing.", ""
	if dear != nil {
		next = fmt.Sprintf("It cannot be signed for again now: %v.", dear)
	}
	if errors.Is(dear, fee.ErrCeiling) || errors.Is(dear, fee.ErrMarket) {
		do = "Raise fee.ceiling and restart, or wait."
	}
	return one("unsent", fmt.Sprintf("Delivery has nothing of what was signed for nonce %d, last at %s: its intent is to end, or the bytes are lost. What comes after it cannot land before it is used.", slot.Nonce, stamp(last.At)), next, do)
}

// full reports a lane at its limit of nonces in flight.
func full(f Facts) []Finding {
	if n := f.Lane.InFlight(); f.Rules.Budget > 0 && n >= f.Rules.Budget {
		return one("full", fmt.Sprintf("%d nonces are in flight, as many as lane.budget allows.", n), "Further intents wait for one of them to land.", "")
	}
	return nil
}

// span formats a range of nonces.
func span(first, end uint64) string {
	if end == first+1 {
		return fmt.Sprintf("nonce %d is", first)
	}
	return fmt.Sprintf("nonces %d to %d are", first, end-1)
}

func amount(a *chain.Amount) string {
	if a == nil {
		return "nobody knows how much"
	}
	return a.String()
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
