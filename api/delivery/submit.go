package delivery

import (
	"encoding/hex"
	"log/slog"
	"net/http"
	"slices"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// submission is the body of POST /v1/transactions.
type submission struct {
	chain chain.ID
	items []item
}

// item is one raw transaction, or the error in its text.
type item struct {
	raw []byte
	err error
}

// results is the answer: one result for each item, in the order of the request.
type results struct {
	Results []any `json:"results"` // taken or refused
}

// taken is the result for a transaction that is recorded.
type taken struct {
	OK           bool           `json:"ok"` // always true
	TxHash       chain.Hash     `json:"txHash"`
	Sender       chain.Address  `json:"sender"`
	NonceKey     chain.NonceKey `json:"nonceKey"`
	Nonce        uint64         `json:"nonce"`
	GroupID      *chain.GroupID `json:"groupId,omitempty"`
	EligibleAt   uint64         `json:"eligibleAt"`
	ExpiresAt    uint64         `json:"expiresAt,omitempty"`
	Status       tx.Status      `json:"status"`
	AlreadyKnown bool           `json:"alreadyKnown"`
	Finalized    bool           `json:"finalized,omitempty"`
	Block        *block         `json:"block,omitempty"`
	Receipt      *receipt       `json:"receipt,omitempty"`
	Waited       *rest.Waited   `json:"waited,omitempty"`
}

// refused is the result for a transaction that is not recorded.
type refused struct {
	OK      bool         `json:"ok"` // always false
	Problem rest.Problem `json:"problem"`
}

// submit answers POST /v1/transactions. An error in the request as a whole refuses the whole
// request; an error in one item is that item's result.
func (a *api) submit(r rest.Request) error {
	q, err := readParameters(r, "wait", "timeout", "validate")
	if err != nil {
		return err
	}
	look, err := q.validateOnly()
	if err != nil {
		return err
	}
	wanted, err := q.wait()
	if err != nil {
		return err
	}
	body, err := r.ReadBody()
	if err != nil {
		return err
	}
	in, err := readSubmission(body, a.Limits, r.Charge)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()

	var raws [][]byte
	var places []int // index in the request of each element of raws
	for i, it := range in.items {
		if it.err == nil {
			raws, places = append(raws, it.raw), append(places, i)
		}
	}
	var answers []commands.Submission
	if look {
		answers, err = a.submitter(r).Validate(ctx, in.chain, raws, commands.From(r.Client()))
	} else {
		answers, err = a.submitter(r).Batch(ctx, in.chain, raws, commands.From(r.Client()), r.Meta())
	}
	if err != nil {
		return err
	}
	all := make([]commands.Submission, len(in.items))
	for i, it := range in.items {
		all[i].Err = it.err
	}
	for i, place := range places {
		all[place] = answers[i]
	}
	if look {
		return a.answerValidation(r, all)
	}
	waits := make([]*rest.Waited, len(all))
	if wanted != nil {
		waits = a.waitForAll(r, *wanted, all)
	}
	return a.answerSubmission(r, all, waits)
}

// answerSubmission answers item by item. If no item was accepted and at least one failed
// without its own fault, the whole request has failed.
func (a *api) answerSubmission(r rest.Request, all []commands.Submission, waits []*rest.Waited) error {
	out := results{make([]any, len(all))}
	counts := map[string]int{}
	var badLuck error
	for i, s := range all {
		outcome := outcomeOf(s)
		counts[outcome]++
		if a.Submitted != nil {
			a.Submitted(outcome)
		}
		if s.Err == nil {
			out.Results[i] = takenOf(s, waits[i])
			continue
		}
		p := r.Problem(s.Err)
		out.Results[i] = refused{Problem: p}
		if outcome == "failed" && (badLuck == nil || p.Code == string(rest.OutcomeUnknown)) {
			badLuck = s.Err
		}
	}
	var facts []slog.Attr
	for _, outcome := range []string{"accepted", "known", "refused", "failed"} {
		facts = append(facts, slog.Int(outcome, counts[outcome]))
	}
	r.Note(badLuck, facts...)
	if badLuck != nil && counts["accepted"]+counts["known"] == 0 {
		return badLuck
	}
	status := http.StatusOK
	if slices.ContainsFunc(waits, (*rest.Waited).InVain) {
		status = http.StatusAccepted
	}
	return r.Reply(status, out)
}

func outcomeOf(s commands.Submission) string {
	switch {
	case s.Err == nil && s.Known:
		return "known"
	case s.Err == nil:
		return "accepted"
	case commands.IsRefusal(s.Err):
		return "refused"
	}
	return "failed"
}

func takenOf(s commands.Submission, waited *rest.Waited) taken {
	t := s.State.Accepted
	shown := taken{
		OK: true, TxHash: t.Hash, Sender: t.Sender, NonceKey: t.NonceKey, Nonce: t.Nonce, GroupID: t.Group,
		EligibleAt: t.EligibleAt, ExpiresAt: t.Window.Before, Status: s.State.Status, AlreadyKnown: s.Known,
		Finalized: s.State.Sealed, Waited: waited,
	}
	shown.Block, shown.Receipt = verdictOf(s.State)
	return shown
}

// readSubmission reads a body. Its items are counted and charged before the first is decoded.
func readSubmission(body []byte, limits rest.Limits, charge func(items int) error) (submission, error) {
	var in submission
	d := rest.NewDocument(body)
	err := d.Whole(func() error {
		return d.Object(
			rest.Member{Name: "chainId", Read: func() (err error) {
				in.chain, err = d.Chain()
				return err
			}},
			rest.Member{Name: "transactions", Read: func() error {
				n := d.Count(limits.BatchItems)
				if n > limits.BatchItems {
					return rest.ErrBatchTooLarge.Because("a batch holds at most %d transactions", limits.BatchItems)
				}
				if err := charge(n); err != nil {
					return err
				}
				return d.List(func(int) error {
					text, err := d.Bytes()
					if err == nil {
						in.items = append(in.items, readItem(text, limits.TransactionBytes))
					}
					return err
				})
			}},
		)
	})
	switch {
	case err != nil:
		return submission{}, err
	case len(in.items) == 0:
		return submission{}, rest.ErrEmptyBatch
	}
	return in, nil
}

// readItem reads 0x and an even number of hex digits in either case, at least two.
func readItem(text []byte, bytesMax int) item {
	malformed := func(fault chain.Fault, detail string) item {
		return item{err: &chain.Malformed{Fault: fault, Detail: detail}}
	}
	switch {
	case len(text) < 4 || len(text)%2 != 0 || text[0] != '0' || text[1] != 'x':
		return malformed(chain.FaultHex, "a transaction must be 0x and an even number of hex digits")
	case len(text)/2-1 > bytesMax:
		return malformed(chain.FaultTooLarge, "the transaction is over the size limit")
	}
	raw := make([]byte, len(text)/2-1)
	if _, err := hex.Decode(raw, text[2:]); err != nil {
		return malformed(chain.FaultHex, "one of the hex digits is invalid")
	}
	return item{raw: raw}
}
