package promise

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/event"
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
		{P1, "acknowledged is durable", "An acceptance that a client was told of is in the log, and stays."},
		{P2, "none is lost", "A transaction that was accepted comes to its end, or says when it is acted on next, or what it waits for."},
		{P3, "one request, one record", "However often and by whomever the same transaction is submitted, it is recorded once."},
		{P4, "no nonce twice", "A nonce that was handed out has one holder, until it is released, and a holder has one nonce."},
		{P5, "no hole", "Nonces are handed out one after the other; none is released for which anything was signed; one that others wait for is used soon."},
		{P6, "the cursor never goes back", "What was handed out is not handed out anew, whatever the chain says; ahead the cursor goes on the word of many."},
		{P7, "fence", "Nothing is recorded on a lane with the token of an earlier holder."},
		{P8, "written before sent", "Nothing reaches a node that was not recorded before."},
		{P9, "bytes intact", "The bytes that reach nodes are those that were accepted, and have the hash and sender that were recorded."},
		{P10, "one nonce, one execution", "Of the transactions with one nonce in one sequence at most one is executed."},
		{P11, "no false end", "A verdict that is sealed is what the final chain says."},
		{P12, "the end is last", "Nothing follows a sealed verdict but the chain's own contradiction, and housekeeping."},
		{P13, "un-mining is recorded", "When the block of an announced verdict leaves the chain, that is recorded; and only then."},
		{P14, "delivered again", "What was un-mined and may still be sent is sent again."},
		{P15, "within the window", "Nothing is sent before it is eligible, or when it has expired."},
		{P16, "in time", "The first attempt follows eligibility without delay."},
		{P17, "keeps trying, politely", "What may be sent is sent again and again, and no node is flooded with it."},
		{P18, "read model is fold", "Every row of a read model is the fold of its events up to the checkpoint."},
		{P19, "rebuilt is live", "A read model made anew from the log is the live one, byte for byte."},
		{P20, "none skipped or doubled", "A reader of the log is shown every event once, in order."},
		{P21, "Redis is disposable", "With Redis, without it, and with one that is emptied the outcomes are the same."},
		{P22, "told what is true", "Who is told of an intent is told every step once or more, without a gap, and ends with what is true."},
		{P23, "cancel holds", "What its owner canceled is not sent any more, and its bytes are gone."},
		{P24, "read your writes", "Who was told of a transaction can read it, and sees it go forward."},
		{P25, "a repeated append has one effect", "Event ids are unique, versions dense, positions rising; a report that is made again adds nothing."},
		{P26, "one clock for each decision", "Clocks that disagree change no outcome."},
		{P27, "sheds, never loses", "Who is turned away is told when to come back, and what was taken is kept."},
		{P28, "secrets stay in", "No key, token, password or canceled transaction is in anything the service writes."},
		{P29, "same bytes, same decision", "What was recorded of a transaction follows from its bytes alone."},
		{P30, "old logs load", "Every event that was ever recorded is read."},
		{P31, "each event is linked", "An event bears the digest of itself and of the event before it in its stream."},
		{P32, "a switch holds", "Nothing is signed for a deployment, a chain or a client that is halted."},
		{P33, "within budget", "What is reserved of a budget never exceeds it, and nothing is signed that is not reserved."},
		{P34, "stopped is stopped", "With a key that is paused, drained or disabled nothing is signed, and one that is draining or low is given nothing new, until an operator acts or the balance is back."},
		{P35, "a row keeps its order", "Intents with one ordering key get rising nonces of one lane, in the order in which they were asked for, unless somebody else has used the nonce of one, or the block by which one had come out leaves the chain."},
		{P36, "non-interference", "What another client does changes no outcome of mine, shows me nothing of theirs, and delays me by no more than my fair share."},
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
	Promise  Number         `json:"promise"`
	Stream   event.Stream   `json:"stream,omitempty"`
	Position event.Position `json:"position,omitempty"` // of the event that shows it; 0: none
	Evidence string         `json:"evidence"`
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
