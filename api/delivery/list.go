package delivery

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// The number of rows on a page.
const (
	pageDefault = 100
	pageMax     = 1000
)

// page is the answer to GET /v1/transactions, newest first by acceptance.
type page struct {
	Transactions []*transaction `json:"transactions"`
	NextCursor   string         `json:"nextCursor,omitempty"`
	HasMore      bool           `json:"hasMore"`
}

// list answers GET /v1/transactions.
func (a *api) list(r rest.Request) error {
	q, err := readParameters(r, "chainId", "sender", "groupId", "ungrouped", "status", "limit", "cursor")
	if err != nil {
		return err
	}
	filters, err := q.filters()
	if err != nil {
		return err
	}
	limit, err := q.limit()
	if err != nil {
		return err
	}
	var before eventlog.Position
	v := a.viewer(r)
	bound := canonical(filters).Encode() + v.list()
	v.narrow(&filters)
	if q.values.Has("cursor") {
		if before, err = r.ReadCursor(q.one("cursor"), bound); err != nil {
			return err
		}
	}
	ctx, cancel := r.Work()
	defer cancel()
	if err := a.ownersKnown(ctx, v); err != nil {
		return err
	}
	rows, more, err := rest.ReadPage(ctx, r, before, limit,
		func(ctx context.Context, before eventlog.Position, limit int) ([]transactions.Row, eventlog.Position, error) {
			return a.Query.Step(ctx, filters, before, limit)
		}, func(row transactions.Row) eventlog.Position { return row.Position })
	if err != nil {
		return err
	}
	out := page{HasMore: more != 0}
	if out.Transactions, err = a.describe(ctx, v, rows); err != nil {
		return err
	}
	if out.HasMore {
		out.NextCursor = r.Cursor(more, bound)
		next := canonical(filters)
		next.Set("limit", strconv.Itoa(limit))
		next.Set("cursor", out.NextCursor)
		r.Answering().Set("Link", "</v1/transactions?"+next.Encode()+`>; rel="next"`)
	}
	return r.ReplyRead(http.StatusOK, out)
}

// parameters are a request's query parameters, all with known names.
type parameters struct{ values url.Values }

// readParameters refuses unknown names: see [rest.Request.Query].
func readParameters(r rest.Request, known ...string) (parameters, error) {
	values, err := r.Query(known...)
	return parameters{values}, err
}

func (p parameters) one(name string) string { return p.values.Get(name) }

// chain is the chainId parameter; 0 if it is missing.
func (p parameters) chain() (chain.ID, error) { return rest.ReadChain(p.values) }

func (p parameters) filters() (f transactions.Filters, err error) {
	if f.Chain, err = p.chain(); err != nil {
		return f, err
	}
	if p.values.Has("sender") {
		sender, err := chain.ParseAddress(p.one("sender"))
		if err != nil {
			return f, rest.BadParameter("sender", "sender: %v", err)
		}
		f.Sender = &sender
	}
	if p.values.Has("groupId") {
		group, err := chain.ParseGroupID(p.one("groupId"))
		if err != nil {
			return f, rest.BadParameter("groupId", "groupId: %v", err)
		}
		f.Group = &group
	}
	if f.Ungrouped, err = p.flag("ungrouped"); err != nil {
		return f, err
	}
	if f.Ungrouped && f.Group != nil {
		return f, rest.BadParameter("ungrouped", "ungrouped=true and groupId exclude each other")
	}
	f.Statuses, err = p.statuses()
	return f, err
}

// flag is a boolean parameter; false if it is missing.
func (p parameters) flag(name string) (bool, error) {
	if !p.values.Has(name) {
		return false, nil
	}
	text := p.one(name)
	if text != "true" && text != "false" {
		return false, rest.BadParameter(name, "%s must be true or false, not %s", name, rest.Quote(text))
	}
	return text == "true", nil
}

func (p parameters) statuses() ([]tx.Status, error) {
	given := p.values["status"]
	if all := tx.Statuses(); len(given) > len(all) {
		return nil, rest.BadParameter("status", "status is given %d times, there are %d", len(given), len(all))
	}
	var statuses []tx.Status
	for _, text := range given {
		if !slices.Contains(tx.Statuses(), tx.Status(text)) {
			return nil, rest.BadParameter("status", "there is no status %s, only: %s", rest.Quote(text), strings.Trim(fmt.Sprint(tx.Statuses()), "[]"))
		}
		statuses = append(statuses, tx.Status(text))
	}
	slices.Sort(statuses)
	return slices.Compact(statuses), nil
}

func (p parameters) limit() (int, error) {
	if !p.values.Has("limit") {
		return pageDefault, nil
	}
	n, err := strconv.ParseUint(p.one("limit"), 10, 64)
	if err != nil || n < 1 || n > pageMax {
		return 0, rest.InParameter("limit", rest.ErrInvalidLimit.Because("limit must be a number from 1 to %d, not %s", pageMax, rest.Quote(p.one("limit"))))
	}
	return int(n), nil
}

// canonical writes filters in one canonical form, to which cursors are bound.
func canonical(f transactions.Filters) url.Values {
	q := url.Values{}
	if f.Chain != 0 {
		q.Set("chainId", f.Chain.String())
	}
	if f.Sender != nil {
		q.Set("sender", f.Sender.String())
	}
	if f.Group != nil {
		q.Set("groupId", f.Group.String())
	}
	if f.Ungrouped {
		q.Set("ungrouped", "true")
	}
	for _, s := range f.Statuses {
		q.Add("status", string(s))
	}
	return q
}
