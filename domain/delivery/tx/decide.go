package tx

import "slices"

func (s State) accept(c Accept) ([]Event, error) {
	switch {
	case s.Status != StatusAbsent:
		if s.Retired || s.Violated || s.OwnedBy(c.Client) || len(s.Resubmitters) >= resubmittersMax {
			return nil, nil // same hash, same transaction
		}
		terms := s.Accepted.Terms()
		terms.Sealed = s.Sealed
		return []Event{Resubmitted{Client: c.Client, Terms: &terms, At: c.At}}, nil
	case c.Window.ClosedAt(uint64(max(c.At.Unix(), 0))):
		return nil, ErrAlreadyExpired.Because("validBefore %d is not after %d", c.Window.Before, c.At.Unix())
	}
	return []Event{c.Accepted}, nil
}

// resubmittersMax bounds how many clients beside the first can own a transaction.
const resubmittersMax = 1000

// Owners returns the clients that submitted the transaction, in order of submission.
func (s State) Owners() []string {
	return append([]string{s.Accepted.Client}, s.Resubmitters...)
}

// OwnedBy reports whether a client submitted the transaction.
func (s State) OwnedBy(client string) bool {
	return s.Status != StatusAbsent && (client == s.Accepted.Client || slices.Contains(s.Resubmitters, client))
}

func (s State) report(c Report) ([]Event, error) {
	if c.Attempt < 1 || len(c.Answers) == 0 {
		panic("tx: a report needs a numbered attempt and answers")
	}
	o := Summarise(c.Answers, c.Everyone)
	// Once a node has accepted the bytes, no refusal is permanent: other nodes may have other
	// settings, the same node may have changed its settings, and its pool may still have the
	// bytes.
	_, taken := s.Recorded[string(Taken)]
	permanent := o.Permanent() && !s.Canceled && !taken
	switch {
	case c.Attempt <= s.Attempt:
		return nil, nil // already reported
	case s.Canceled && (s.Handed || o.Class != Taken && o.Class != Unknown):
		return nil, nil // after a cancel, only news that a node may have the bytes is recorded
	case s.Verdict != StatusAbsent || s.Status == StatusInvalid:
		return nil, nil // a verdict or permanent refusal came first
	case !permanent && c.Attempt < 2*s.Recorded[s.key(o)]:
		return nil, nil // bounds the history of endless retries
	case o.Class == Taken:
		return []Event{Broadcast{c.Attempt, c.Answers, c.At}}, nil
	}
	return []Event{Rejected{c.Attempt, o.Class, o.Cause, o.Message, permanent, c.Answers, c.At}}, nil
}

func (s State) seeReceipt(c SeeReceipt) ([]Event, error) {
	mined := Mined(c)
	switch same := s.Block.Hash == c.Receipt.Block.Hash; {
	case s.Verdict == StatusExecuted && same:
		return nil, nil
	case s.Sealed:
		return []Event{FinalityViolated{s.Verdict, s.Block, c.Receipt.Block, c.At}}, nil
	case s.Verdict == StatusExecuted:
		return []Event{Reorged{s.Block, c.Receipt.Block, s.unwanted(), c.At}, mined}, nil
	}
	// Any other status, stale and expired included, gives way to the chain's word.
	return []Event{mined}, nil
}

func (s State) seeNonce(c SeeNonce) ([]Event, error) {
	switch {
	case s.Verdict != StatusAbsent:
		return nil, nil
	case s.Accepted.NonceKey.IsExpiring():
		return nil, ErrNonceCurrent.Because("an expiring nonce has no sequence")
	case c.Current <= s.Accepted.Nonce:
		return nil, ErrNonceCurrent.Because("the chain's next nonce is %d, this is %d", c.Current, s.Accepted.Nonce)
	}
	return []Event{StaleByNonce(c)}, nil
}

func (s State) seeTime(c SeeTime) ([]Event, error) {
	switch {
	case s.Verdict != StatusAbsent:
		return nil, nil
	case !s.Accepted.Window.ClosedAt(c.Block.Time):
		return nil, ErrWindowOpen.Because("block %d has time %d, validBefore is %d", c.Block.Number, c.Block.Time, s.Accepted.Window.Before)
	}
	return []Event{Expired(c)}, nil
}

func (s State) loseBlock(c LoseBlock) ([]Event, error) {
	switch {
	case s.Verdict == StatusAbsent || s.Block.Hash != c.Was.Hash:
		return nil, nil
	case s.Sealed:
		return []Event{FinalityViolated{s.Verdict, s.Block, c.Now, c.At}}, nil
	}
	return []Event{Reorged{s.Block, c.Now, s.unwanted(), c.At}}, nil
}

func (s State) finalize(c Finalize) ([]Event, error) {
	if s.Verdict == StatusAbsent || s.Sealed || s.Block.Number > c.Final.Number {
		return nil, nil
	}
	finalized := Finalized{s.Verdict, s.Block, c.Final, c.At}
	if was, is := s.Receipt, c.Receipt; was != nil && is != nil && was.Block.Hash == is.Block.Hash && was.Status != is.Status {
		return []Event{Reorged{s.Block, c.Final, s.unwanted(), c.At}, Mined{*is, c.At}, finalized}, nil
	}
	return []Event{finalized}, nil
}

func (s State) cancel(c Cancel) ([]Event, error) {
	switch {
	case s.Canceled:
		return nil, nil
	case s.Settled() || s.Status == StatusInvalid:
		return nil, ErrSettled.Because("it is %s", s.Status)
	}
	// An announced verdict stays. If its block leaves the chain, the bytes are not sent again.
	return []Event{CanceledLocally{Reason: c.Reason, Verdict: s.Verdict, At: c.At}}, nil
}

func (s State) erase(c Erase) ([]Event, error) {
	switch {
	case s.Erased:
		return nil, nil
	case !s.Settled() && !s.unwanted():
		return nil, ErrNotSettled.Because("its bytes may have to be sent again: it is %s", s.Status)
	}
	return []Event{PayloadErased(c)}, nil
}

func (s State) retire(c Retire) ([]Event, error) {
	switch {
	case s.Retired:
		return nil, nil
	case !s.Settled() || !s.Erased:
		return nil, ErrNotSettled.Because("it is %s", s.Status)
	}
	return []Event{Retired(c)}, nil
}

// Outcome summarizes the answers to one attempt.
type Outcome struct {
	Class   Class
	Cause   Cause
	Message string
}

// Permanent reports whether no node will ever accept the bytes.
func (o Outcome) Permanent() bool { return o.Class == Permanent }

// String returns the class with the message, or else with the cause.
func (o Outcome) String() string {
	switch {
	case o.Message != "":
		return string(o.Class) + ": " + o.Message
	case o.Cause != "":
		return string(o.Class) + ": " + string(o.Cause)
	}
	return string(o.Class)
}

// Key identifies the kind of outcome for the history. It leaves out the message if a cause is
// set, and the message's digits always: balances and limits change each time.
func (o Outcome) Key() string {
	switch {
	case o.Class == Taken:
		return string(o.Class)
	case o.Cause != "":
		return string(o.Class) + " " + string(o.Cause)
	}
	return string(o.Class) + " " + withoutNumbers(o.Message)
}

// maxKeyBytes bounds the part of a message in [Outcome.Key], and so the number of keys that a
// node can produce.
const maxKeyBytes = 48

func withoutNumbers(s string) string {
	b := make([]byte, 0, maxKeyBytes)
	for i := 0; i < len(s) && len(b) < maxKeyBytes; i++ {
		if c := s[i]; c < '0' || c > '9' {
			b = append(b, c)
		}
	}
	return string(b)
}

// Summarise combines the endpoints' answers. The outcome is taken if any endpoint accepted or had
// the bytes; else unknown if any may have them; permanent if every healthy endpoint was asked and
// all refused permanently; else retry.
func Summarise(answers []Answer, everyone bool) Outcome {
	found := func(classes ...Class) (Answer, bool) {
		i := slices.IndexFunc(answers, func(a Answer) bool { return slices.Contains(classes, a.Class) })
		if i < 0 {
			return Answer{}, false
		}
		return answers[i], true
	}
	if _, ok := found(Taken, Known); ok {
		return Outcome{Class: Taken}
	}
	if a, ok := found(Unknown); ok {
		return Outcome{Unknown, a.Cause, a.Message}
	}
	if a, ok := found(Retry); ok {
		return Outcome{Retry, a.Cause, a.Message}
	}
	a := answers[0]
	if !everyone {
		return Outcome{Retry, a.Cause, a.Message}
	}
	return Outcome{Permanent, a.Cause, a.Message}
}
