package doctor

import (
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

func one(code, says, next, do string) []Finding { return []Finding{{code, says, next, do}} }

func chainUnknown(f Facts) []Finding {
	if f.NodeErr == nil {
		return nil
	}
	return one("chain-unknown", fmt.Sprintf("The chain's next nonce is unknown: %v.", f.NodeErr),
		"Signed transactions are sent as soon as endpoints answer; no new nonce is assigned before a quorum of endpoints agrees.",
		"Check the endpoints of the chain.")
}

// unheld reports a lane without a working holder.
func unheld(f Facts) []Finding {
	switch {
	case f.Lane.Token == 0:
		return one("never-opened", "The lane was never opened.",
			"A relayer with the signer's key opens it at the start; a lane of another nonce key than 0, when an intent requests it.",
			"Start a relayer with the key; if one runs, check signers.allowed and lane.formats.")
	case f.Lease.Unknown != "":
		return one("lease-unknown", fmt.Sprintf("The holder of the lane's lease is unknown, because the lease in %s could not be read: %s.", f.Lease.Where, f.Lease.Unknown), "", "")
	case f.Lease.Runs:
		return nil
	case !f.ID.Key.IsZero() && f.Lane.InFlight() == 0:
		return nil // it is released when no intent asks for it
	}
	return one("not-held", fmt.Sprintf("No relayer holds the lane: its last holder opened it at %s, and %s has no valid lease for it.", stamp(f.Opened), f.Lease.Where),
		"Any replica still delivers signed transactions; nothing is signed, bumped or settled until a relayer with the key runs.",
		"Start a relayer with the key of "+f.ID.Sender.String()+". If one runs, check that it has the same lane.leases, database and Redis as this configuration.")
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
		all = append(all, Finding{"signer-" + string(status), fmt.Sprintf("The signer is %s, %s: it signs nothing, not even bumps and no-ops.", status, by),
			"Signed transactions are still delivered.", resume})
	case signer.StatusDraining:
		all = append(all, Finding{"signer-draining", "The signer is draining, " + by + ": it finishes its intents, and gets no new ones.", "It is drained when no intent is left.", resume})
	case signer.StatusDisabled:
		all = append(all, Finding{"signer-disabled", fmt.Sprintf("The signer is disabled after %d failures of the key store or remote signer.", len(s.Failures)),
			"Nothing is signed until an operator resumes it; intents of its pools go to other signers.", "Repair the key store or remote signer, then " + resume})
	case signer.StatusLow:
		all = append(all, Finding{"signer-low", fmt.Sprintf("The signer's balance is %s, below its threshold, %s.", amount(f.Balance), s.Threshold),
			"It finishes its intents, and gets no new ones until its balance is a tenth above the threshold.", "Transfer funds to the signer."})
	case signer.StatusUnknown:
		all = append(all, Finding{"signer-unknown", "The signer is not registered on this chain.", "A relayer with its key registers it at the start.", ""})
	}
	if err := f.Switches.CheckNoOp(f.ID.Chain); err != nil {
		all = append(all, Finding{"halted", fmt.Sprintf("A halt stops all signing: %v.", err), "Signed transactions are still delivered.",
			fmt.Sprintf("relayer safeguards resume --reason …, with --chain %s if the halt is of the chain", f.ID.Chain)})
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
		return one("nonce-unknown", fmt.Sprintf("The lane does not know its first nonce; the chain's next nonce is %d.", wants),
			"Its holder starts at the chain's next nonce when a quorum of endpoints agrees, and under another nonce key than 0 once an intent could be signed.", "")
	case wants > next:
		return one("external-use", fmt.Sprintf("The chain's next nonce is %d, and the cursor is at %d: %s used by foreign transactions. Somebody else has the key.", wants, next, span(next, wants)),
			fmt.Sprintf("The lane's holder compares them every %s, or when a nonce stalls, and continues at %d: no intent is lost, and no nonce is assigned twice.", f.Rules.Look, wants),
			"Find out who else signs with this key.")
	case gap.First < gap.End:
		return one("jumped-over", fmt.Sprintf("The chain's next nonce is %d, but the cursor jumped past it, because endpoints reported a wrong nonce: %s unused, and no transaction above can be mined.", wants, span(gap.First, gap.End)),
			"The lane's holder reclaims them at its next check: it assigns them to intents, and fills the rest with no-ops.", "")
	case f.Regressed():
		return one("chain-went-back", fmt.Sprintf("The chain's next nonce is %d, but the lane has recorded this nonce as used in a final block: the chain has lost final blocks, or endpoints serve another chain.", wants),
			"No nonce is signed again automatically: the lane continues at its cursor, and its transactions cannot be mined before the chain has caught up.",
			"Check the endpoints of the chain. If final blocks are really lost, request their intents again.")
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
			all = append(all, Finding{"hole-free", fmt.Sprintf("Nonce %d is a nonce gap: its intent gave it back, and signed transactions above it cannot be mined before it is used.", h.Nonce),
				"The lane's holder fills it with a no-op, unless a finding above stops signing.", ""})
		default:
			all = append(all, f.heldHole(h))
		}
	}
	return all
}

// heldHole explains why an intent with a nonce has no attempt.
func (f Facts) heldHole(h Hole) Finding {
	it := f.Intents[h.Intent]
	why := "the reason is unknown"
	switch {
	case it.Place == nil:
		why = "the assignment is not recorded in the intent yet"
	case it.Stop.Reason != "":
		why = "it is being stopped: " + string(it.Stop.Reason)
	default:
		if f.MarketErr != nil {
			why = "the gas price is unknown: " + f.MarketErr.Error()
		} else if _, err := f.Rules.Policy.Offer(f.Market, f.terms(it)); errors.Is(err, fee.ErrMarket) {
			why = fmt.Sprintf("its fee limit is below the gas price (%v)", err)
		} else if err != nil {
			why = err.Error()
		} else if it.Requested.Request.Gas.Limit == 0 {
			why = "no node has estimated its gas"
		}
	}
	found := Finding{
		Code: "hole-held", Says: fmt.Sprintf("Nonce %d has been assigned to intent %s since %s, but is not signed: %s. Signed transactions above it cannot be mined before it is used.", h.Nonce, h.Intent, stamp(h.Since), why),
		Next: "It is signed as soon as this obstacle is gone; until then all nonces above it wait.",
	}
	if h.Fill != nil {
		found.Do = fmt.Sprintf("relayer doctor --fill makes the intent give nonce %d back, and a no-op fills it; the intent gets another nonce later. Or relayer intents cancel %s.", h.Nonce, h.Intent)
	} else {
		found.Do = fmt.Sprintf("It cannot be filled: %s. relayer intents cancel %s ends the intent, and a no-op fills its nonce.", h.Why, h.Intent)
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
		return one("contradicted", fmt.Sprintf("The chain contradicts a final block about nonce %d.", slot.Nonce),
			"Nothing more is signed for the nonce.", "Compare the endpoints with others, and decide by hand: watchtower audit show prints the recorded events.")
	case f.any(slot, func(t Tx) bool { return t.Verdict == tx.StatusExecuted }):
		return nil // the lane learns of it
	case used && f.any(slot, func(t Tx) bool { return t.Verdict == tx.StatusStale }):
		return one("external-use-of-open", fmt.Sprintf("Nonce %d is used, but by none of the %d attempts recorded here: somebody else has the key.", slot.Nonce, len(slot.Attempts)),
			"When the block is final, the nonce is recorded as lost, and its intent gets another nonce.", "Find out who else signs with this key.")
	case t.Last != nil && t.Last.Cause == tx.Funds:
		return one("lacks-funds", fmt.Sprintf("Nodes refuse the attempt at nonce %d: the signer cannot pay for it; its balance is %s.", slot.Nonce, amount(f.Balance)),
			"It is retried, and can be mined when the balance suffices; later nonces wait.", "Transfer funds to "+f.ID.Sender.String()+".")
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
		all = append(all, Finding{"dropped", fmt.Sprintf("No queried node has the attempt at nonce %d, %s: it was dropped.", slot.Nonce, last.Hash),
			"Delivery sends the same bytes again" + again + ". No new transaction is signed, and no other nonce is used.", ""})
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
		next := fmt.Sprintf("After %s without progress it is bumped.", f.Rules.Stall)
		do := ""
		if errors.Is(dear, fee.ErrCeiling) || errors.Is(dear, fee.ErrMarket) {
			next, do = "It cannot be bumped below the ceiling, so it waits until the base fee falls.", "Raise fee.ceiling and restart, or wait."
		}
		all = append(all, Finding{"underpriced", fmt.Sprintf("The attempt at nonce %d offers %s per unit of gas, less than the next block's base fee, %s.", slot.Nonce, last.Fee.MaxFee, f.BaseFee), next, do})
	}
	most := lane.AttemptsMax
	if !last.Intent.IsZero() {
		most = lane.BumpsMax
	}
	if len(slot.Attempts) >= most {
		all = append(all, Finding{"attempts-spent", fmt.Sprintf("Nonce %d has %d attempts, the maximum.", slot.Nonce, len(slot.Attempts)), "Any of them may still be mined. The last few attempts are reserved for no-ops: the lane's holder makes the intent give way at its next stall.", ""})
	} else if over && len(all) == 0 {
		next := "The lane's holder bumps it at its next turn."
		if dear != nil {
			next = fmt.Sprintf("It cannot be bumped now: %v.", dear)
		}
		all = append(all, Finding{"stalled", fmt.Sprintf("The attempt at nonce %d has been pending for %s, longer than lane.stall, %s.", slot.Nonce, waits, f.Rules.Stall), next,
			"Check that the chain makes blocks, and that endpoints pass transactions on."})
	}
	return all
}

// unsent reports attempts that delivery does not have.
func unsent(slot lane.Slot, last lane.Made, dear error) []Finding {
	next, do := "The lane's holder signs another attempt, or fills the nonce with a no-op, unless a finding above stops signing.", ""
	if dear != nil {
		next = fmt.Sprintf("No attempt can be signed now: %v.", dear)
	}
	if errors.Is(dear, fee.ErrCeiling) || errors.Is(dear, fee.ErrMarket) {
		do = "Raise fee.ceiling and restart, or wait."
	}
	return one("unsent", fmt.Sprintf("Delivery has no attempt for nonce %d, last signed at %s: its intent is being stopped, or the bytes are lost. Later nonces cannot be mined before it is used.", slot.Nonce, stamp(last.At)), next, do)
}

// full reports a lane at its limit of nonces in flight.
func full(f Facts) []Finding {
	if n := f.Lane.InFlight(); f.Rules.Budget > 0 && n >= f.Rules.Budget {
		return one("full", fmt.Sprintf("%d nonces are in flight, the maximum by lane.budget.", n), "Further intents wait until one of them is mined.", "")
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
		return "unknown"
	}
	return a.String()
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
