package safeguards

import (
	"math/big"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// money is fees and value.
type money [2]*big.Int

func moneyOf(s budget.Sum) money { return money{s.Fee.Int().ToBig(), s.Value.Int().ToBig()} }

func nothing() money { return money{new(big.Int), new(big.Int)} }

// purse is the judge's state of one chain's budget.
type purse struct {
	limits  map[budget.Account]budget.Limit
	limited time.Time // since when there is a limit; zero: no limit
	day     budget.Day
	used    map[budget.Account]money // on day
	held    map[holding]*held
	lanes   map[budget.Lane]*shelf
}

// shelf is the number of a lane's reservations, and its last token.
type shelf struct {
	held  int
	token uint64
}

// holding identifies a reservation.
type holding struct {
	lane budget.Lane
	of   budget.Purpose
}

type held struct {
	payers []budget.Account
	cap    money
	new    money // the part counted on day
	day    budget.Day
	// free means that an attempt was signed while there was no limit, so that no reservation was
	// needed.
	free bool
}

func (j *Judge) purse(on chain.ID) *purse {
	p := j.purses[on]
	if p == nil {
		p = &purse{limits: map[budget.Account]budget.Limit{}, used: map[budget.Account]money{}, held: map[holding]*held{}, lanes: map[budget.Lane]*shelf{}}
		j.purses[on] = p
	}
	return p
}

// payers returns the accounts charged by a new reservation; a subject only if it is limited.
func (p *purse) payers(h holding, c budget.Charge) []budget.Account {
	all := []budget.Account{{Kind: budget.OnChain}, {Kind: budget.OfSigner, Signer: h.lane.Signer}}
	if !h.of.Intent.IsZero() {
		all = append(all, budget.Account{Kind: budget.OfClient, Client: c.Client})
	}
	subject := budget.Account{Kind: budget.OfSubject, Client: c.Client, Subject: c.Subject}
	if limit := p.limit(subject); c.Subject != "" && (limit[0] != nil || limit[1] != nil) {
		all = append(all, subject)
	}
	return all
}

// limit returns an account's limit; nil: no limit.
func (p *purse) limit(a budget.Account) [2]*chain.Amount {
	l, own := p.limits[a]
	switch {
	case !own && a.Kind == budget.OfClient:
		l = p.limits[budget.Account{Kind: budget.EachClient}]
	case !own && a.Kind == budget.OfSubject:
		l = p.limits[budget.Account{Kind: budget.EachSubject}]
	case !own && a.Kind == budget.OfSigner:
		l = p.limits[budget.Account{Kind: budget.EachSigner}]
	}
	return [2]*chain.Amount{l.Fee, l.Value}
}

// ofBudget follows the reservations.
func (j *Judge) ofBudget(r eventlog.Recorded) error {
	on, err := budget.ParseStream(r.Stream)
	if err != nil {
		return err
	}
	e, err := j.budget.Decode(r.Name, r.Data)
	if err != nil {
		return err
	}
	p := j.purse(on)
	switch e := e.(type) {
	case budget.LimitSet:
		if e.Actor == "" {
			j.broken(promises.P33, r, "%s without an actor", r.Name)
		}
		if delete(p.limits, e.Account); e.Limit.Fee != nil || e.Limit.Value != nil {
			p.limits[e.Account] = e.Limit
		}
		p.limited = since(p.limited, len(p.limits) > 0, r.At)
	case budget.Reserved:
		j.dated(p, r, e.Day)
		j.fenced(p, r, e.Lane, e.Token)
		for _, c := range e.Charges {
			j.reserves(p, r, holding{e.Lane, c.Purpose}, c)
		}
	case budget.Settled:
		j.dated(p, r, e.Day)
		j.fenced(p, r, e.Lane, e.Token)
		for _, spent := range e.Spent {
			j.settles(p, r, holding{e.Lane, spent.Purpose}, moneyOf(spent.Sum))
		}
	}
	return nil
}

// dated checks P33 for days: they do not go back, and none begins too early. A decision from just
// before midnight may be recorded just after.
func (j *Judge) dated(p *purse, r eventlog.Recorded, day budget.Day) {
	switch {
	case day < p.day:
		j.broken(promises.P33, r, "it counts on %s, after %s had begun", day, p.day)
		return
	case day > budget.DayOf(r.At.Add(j.s.Grace)) || day < budget.DayOf(r.At.Add(-j.s.Grace)):
		j.broken(promises.P33, r, "it counts on %s, and was recorded on %s", day, budget.DayOf(r.At))
	}
	if day > p.day {
		p.day, p.used = day, map[budget.Account]money{}
	}
}

// fenced checks P7 for budgets: while a lane has reservations, no older token changes them.
func (j *Judge) fenced(p *purse, r eventlog.Recorded, of budget.Lane, token uint64) {
	s := p.lanes[of]
	if s == nil {
		s = &shelf{}
		p.lanes[of] = s
	}
	if s.held > 0 && token < s.token {
		j.broken(promises.P7, r, "%s bears token %d, and %d has reserved for %s", r.Name, token, s.token, of.Signer)
		return
	}
	s.token = token
}

// reserves checks P33: an addition takes no account above its limit.
func (j *Judge) reserves(p *purse, r eventlog.Recorded, h holding, c budget.Charge) {
	was := p.held[h]
	if was == nil {
		was = &held{payers: p.payers(h, c), cap: nothing(), new: nothing(), day: p.day}
		p.held[h] = was
		p.lanes[h.lane].held++
	}
	if was.day != p.day {
		was.day, was.new = p.day, nothing()
	}
	above := false
	for i, worst := range moneyOf(c.Sum) {
		more := new(big.Int).Sub(worst, was.cap[i])
		if more.Sign() <= 0 {
			continue
		}
		was.cap[i], was.new[i] = worst, new(big.Int).Add(was.new[i], more)
		for _, a := range was.payers {
			sum, limit := p.move(a, i, more), p.limit(a)[i]
			if limit != nil {
				j.cases.Add(promises.P33)
			}
			if limit != nil && sum.Cmp(limit.Int().ToBig()) > 0 && !above {
				above = true // reported once per charge
				j.broken(promises.P33, r, "with %s more %s has reserved %s, and its limit is %s", more, a, sum, limit)
			}
		}
	}
}

// move adds to an account's used sum.
func (p *purse) move(a budget.Account, i int, more *big.Int) *big.Int {
	used, any := p.used[a]
	if !any {
		used = nothing()
	}
	used[i] = new(big.Int).Add(used[i], more)
	p.used[a] = used
	return used[i]
}

// settles returns the unspent money counted today. P33: no purpose costs more than its
// reservation.
func (j *Judge) settles(p *purse, r eventlog.Recorded, h holding, spent money) {
	was := p.held[h]
	if was == nil {
		j.broken(promises.P33, r, "%+v of %s is settled, and was not reserved", h.of, h.lane.Signer)
		return
	}
	delete(p.held, h)
	p.lanes[h.lane].held--
	for i := range spent {
		back := new(big.Int).Sub(was.cap[i], spent[i])
		switch {
		case back.Sign() < 0 && was.free: // it is counted too
		case back.Sign() < 0:
			j.broken(promises.P33, r, "%+v of %s took %s, and %s was reserved", h.of, h.lane.Signer, spent[i], was.cap[i])
		case was.day != p.day:
			back = new(big.Int)
		case back.Cmp(was.new[i]) > 0:
			back = was.new[i]
		}
		for _, a := range was.payers {
			p.move(a, i, new(big.Int).Neg(back))
		}
	}
}

// row maps the nonces of a lane to their intents.
type row map[uint64]chain.IntentID

// holds follows the holders of nonces, to find the purpose of a no-op. P33: a final landing was
// settled before, because the lane drops the nonce then.
func (j *Judge) holds(r eventlog.Recorded, id chain.Sequence, e lane.Event) {
	of := j.rows[id]
	if of == nil {
		of = row{}
		j.rows[id] = of
	}
	switch e := e.(type) {
	case lane.Reserved:
		for _, issue := range e.Reissued {
			of[issue.Nonce] = issue.Intent
		}
		for i, intent := range e.Intents {
			of[e.First+uint64(i)] = intent
		}
	case lane.Released:
		delete(of, e.Nonce)
	case lane.Lost:
		delete(of, e.Nonce)
	case lane.Attempted:
		j.reserved(r, id, of.holding(id, e.Nonce), e)
	case lane.Landed:
		if !e.Final {
			return
		}
		if h := of.holding(id, e.Nonce); j.purse(id.Chain).held[h] != nil {
			j.broken(promises.P33, r, "nonce %d is final, but its charge is not settled", e.Nonce)
		}
		delete(of, e.Nonce)
	case lane.Opened, lane.Advanced, lane.Reclaimed, lane.Filled, lane.Unlanded: // no nonce changes its holder
	}
}

// holding returns the reservation for a nonce.
func (of row) holding(id chain.Sequence, nonce uint64) holding {
	h := holding{budget.Lane{Signer: id.Sender, NonceKey: id.Key}, budget.Purpose{Nonce: nonce}}
	if intent, holds := of[nonce]; holds {
		h.of = budget.Purpose{Intent: intent}
	}
	return h
}

// reserved checks P33: while there is a limit, an attempt is signed only with a reservation that
// covers its known minimum cost.
func (j *Judge) reserved(r eventlog.Recorded, id chain.Sequence, h holding, e lane.Attempted) {
	p := j.purse(id.Chain)
	was := p.held[h]
	if !j.over(p.limited, r.At) {
		if was != nil {
			was.free = true
		}
		return
	}
	j.cases.Add(promises.P33)
	least := new(big.Int).Mul(e.Fee.MaxFee.Int().ToBig(), new(big.Int).SetUint64(j.s.Gas))
	switch {
	case was == nil:
		j.broken(promises.P33, r, "%s is signed at nonce %d, and nothing is reserved for it", e.Hash, e.Nonce)
	case was.cap[0].Cmp(least) < 0:
		j.broken(promises.P33, r, "%s is signed at nonce %d and may cost %s or more, and %s is reserved", e.Hash, e.Nonce, least, was.cap[0])
	}
}
