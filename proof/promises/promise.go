package promises

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Number identifies a promise and never changes.
type Number int

// The promises. Package lanes judges 4 to 7, about nonces. Package intents judges 22, about the
// notifications of intents, and 35, about their order. Package safeguards judges 32 to 34, about
// the permission to sign, and the part of 23 about intents. [Undisturbed] and [Secrets] judge 36,
// about the isolation of clients.
const (
	P1  Number = 1
	P2  Number = 2
	P3  Number = 3
	P4  Number = 4
	P5  Number = 5
	P6  Number = 6
	P7  Number = 7
	P8  Number = 8
	P9  Number = 9
	P10 Number = 10
	P11 Number = 11
	P12 Number = 12
	P13 Number = 13
	P14 Number = 14
	P15 Number = 15
	P16 Number = 16
	P17 Number = 17
	P18 Number = 18
	P19 Number = 19
	P20 Number = 20
	P21 Number = 21
	P22 Number = 22
	P23 Number = 23
	P24 Number = 24
	P25 Number = 25
	P26 Number = 26
	P27 Number = 27
	P28 Number = 28
	P29 Number = 29
	P30 Number = 30
	P31 Number = 31
	P32 Number = 32
	P33 Number = 33
	P34 Number = 34
	P35 Number = 35
	P36 Number = 36
)

// String returns P and the number.
func (n Number) String() string { return fmt.Sprintf("P%d", int(n)) }

// MarshalText returns [Number.String].
func (n Number) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText parses the text of [Number.MarshalText].
func (n *Number) UnmarshalText(b []byte) error {
	digits, ok := strings.CutPrefix(string(b), "P")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return fmt.Errorf("%q is no promise: want P and a number", b)
	}
	*n = Number(number)
	return nil
}

// Promise is one promise of the service.
type Promise struct {
	Number    Number
	Name      string
	Statement string // one sentence
}

// All returns the promises in the order of their numbers.
func All() []Promise {
	return []Promise{
		{P1, "acknowledged is durable", "An acceptance that was reported to a client is in the log, and stays there."},
		{P2, "none is lost", "An accepted transaction ends, or records the time of its next attempt or the condition that it waits for."},
		{P3, "one request, one record", "A transaction is recorded once, however often and by however many clients it is submitted."},
		{P4, "no nonce twice", "An assigned nonce has one holder until it is released, and a holder has one nonce."},
		{P5, "no nonce gap", "Nonces are assigned one after the other; a nonce for which anything was signed is not released; a nonce that later nonces wait for is used soon."},
		{P6, "the cursor never goes back", "An assigned nonce is not assigned again, regardless of the chain's state; the cursor jumps ahead only when a quorum of endpoints agrees."},
		{P7, "fence", "Nothing is recorded on a lane with the token of an earlier holder."},
		{P8, "written before sent", "Nothing reaches a node unless it was recorded before."},
		{P9, "bytes intact", "The bytes that reach nodes are the accepted bytes, with the recorded hash and sender."},
		{P10, "one nonce, one execution", "Of the transactions with one nonce in one sequence at most one is executed."},
		{P11, "no false end", "A sealed verdict agrees with the final chain."},
		{P12, "the end is last", "Only a record that the chain contradicted itself, and housekeeping, follow a sealed verdict."},
		{P13, "un-mining is recorded", "The withdrawal of an announced verdict is recorded when its block leaves the chain, and only then."},
		{P14, "delivered again", "A transaction that was un-mined and may still be sent is sent again."},
		{P15, "within the window", "Nothing is sent before it is eligible, or after it has expired."},
		{P16, "in time", "The first attempt follows eligibility without delay."},
		{P17, "keeps trying, politely", "A transaction that may be sent is sent repeatedly, and no node is flooded with it."},
		{P18, "read model is fold", "Every row of a read model is the fold of its events up to the checkpoint."},
		{P19, "rebuilt is live", "A read model rebuilt from the log equals the live read model, byte for byte."},
		{P20, "none skipped or doubled", "A reader of the log gets every event once, in order."},
		{P21, "Redis is disposable", "The outcomes are the same with Redis, without Redis, and with an emptied Redis."},
		{P22, "true public events", "Each receiver of an intent's public events gets every step once or more, without a gap, and in the end the true state."},
		{P23, "cancel holds", "A transaction or intent that its owner canceled is not sent again, and its bytes are erased."},
		{P24, "read your writes", "A client that got an acknowledgement of a transaction can read the transaction, and sees its progress."},
		{P25, "a repeated append has one effect", "Event ids are unique, versions have no gaps, positions rise; a repeated report adds nothing."},
		{P26, "one clock for each decision", "Clocks that disagree change no outcome."},
		{P27, "sheds, never loses", "A refused client learns when to retry, and everything that was accepted is kept."},
		{P28, "secrets stay in", "No key, token, password or canceled transaction is in anything the service writes."},
		{P29, "same bytes, same decision", "Everything recorded of a transaction follows from its bytes alone."},
		{P30, "old logs load", "Every event that was ever recorded can be read."},
		{P31, "each event is linked", "An event carries its own digest and the digest of the event before it in its stream."},
		{P32, "a switch holds", "Nothing is signed for a halted deployment, chain or client."},
		{P33, "within budget", "The sum reserved of a budget never exceeds the budget, and nothing is signed without a reservation."},
		{P34, "stopped is stopped", "A paused, drained or disabled key signs nothing, and a draining or low key gets nothing new, until an operator acts or the balance is restored."},
		{P35, "an ordering group keeps its order", "Intents with one ordering key get rising nonces of one lane, in the order of their requests, unless another sender has used an intent's nonce, or the block by which an intent had completed leaves the chain."},
		{P36, "non-interference", "Another client's actions change no outcome of mine, show me nothing of theirs, and delay me by no more than my fair share."},
	}
}

// Of returns the promise with a number; the zero Promise if there is none.
func Of(n Number) Promise {
	for _, p := range All() {
		if p.Number == n {
			return p
		}
	}
	return Promise{}
}

// Violation is a broken promise with its evidence.
type Violation struct {
	Promise  Number            `json:"promise"`
	Stream   eventlog.Stream   `json:"stream,omitempty"`
	Position eventlog.Position `json:"position,omitempty"` // of the event that shows it; 0: none
	Evidence string            `json:"evidence"`
}

// String returns promise, stream, position and evidence.
func (v Violation) String() string {
	where := ""
	if v.Stream != "" {
		where = " " + string(v.Stream)
	}
	if v.Position != 0 {
		where += fmt.Sprintf(" at %d", v.Position)
	}
	return fmt.Sprintf("%s (%s)%s: %s", v.Promise, Of(v.Promise).Name, where, v.Evidence)
}
