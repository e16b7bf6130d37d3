package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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
func (a *api) list(w http.ResponseWriter, r *http.Request) error {
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
	v := a.viewer(exchangeOf(r))
	bound := canonical(filters).Encode() + v.list()
	v.narrow(&filters)
	if q.values.Has("cursor") {
		if before, err = readCursor(a.CursorKey, q.one("cursor"), bound); err != nil {
			return err
		}
	}
	ctx, cancel := a.work(r)
	defer cancel()
	if err := a.ownersKnown(ctx, v); err != nil {
		return err
	}
	rows, more, err := ReadPage(ctx, Request{r, w, exchangeOf(r)}, before, limit,
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
		out.NextCursor = cursorAfter(a.CursorKey, more, bound)
		next := canonical(filters)
		next.Set("limit", strconv.Itoa(limit))
		next.Set("cursor", out.NextCursor)
		w.Header().Set("Link", "</v1/transactions?"+next.Encode()+`>; rel="next"`)
	}
	return replyRead(w, exchangeOf(r), http.StatusOK, out)
}

// parameters are a request's query parameters, all with known names.
type parameters struct{ values url.Values }

// readParameters refuses unknown names: a misspelt filter must not list everything. Only status
// may occur more than once.
func readParameters(r *http.Request, known ...string) (parameters, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return parameters{}, ErrInvalidFilter.Because("the query is not well escaped")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return parameters{}, ErrInvalidFilter.Because("there is no parameter %s, only: %s", quote(name), strings.Join(known, ", "))
		case len(values[name]) > 1 && name != "status":
			return parameters{}, ErrInvalidFilter.Because("%s is given more than once", name)
		}
	}
	return parameters{values}, nil
}

func (p parameters) one(name string) string { return p.values.Get(name) }

// chain is the chainId parameter; 0 if it is missing.
func (p parameters) chain() (chain.ID, error) {
	if !p.values.Has("chainId") {
		return 0, nil
	}
	id, err := chain.ParseID(p.one("chainId"))
	if err != nil {
		return 0, ErrInvalidFilter.Because("chainId %s is not a positive decimal number", quote(p.one("chainId")))
	}
	return id, nil
}

func (p parameters) filters() (f transactions.Filters, err error) {
	if f.Chain, err = p.chain(); err != nil {
		return f, err
	}
	if p.values.Has("sender") {
		sender, err := chain.ParseAddress(p.one("sender"))
		if err != nil {
			return f, ErrInvalidFilter.Because("sender: %v", err)
		}
		f.Sender = &sender
	}
	if p.values.Has("groupId") {
		group, err := chain.ParseGroupID(p.one("groupId"))
		if err != nil {
			return f, ErrInvalidFilter.Because("groupId: %v", err)
		}
		f.Group = &group
	}
	if f.Ungrouped, err = p.flag("ungrouped"); err != nil {
		return f, err
	}
	if f.Ungrouped && f.Group != nil {
		return f, ErrInvalidFilter.Because("ungrouped=true and groupId exclude each other")
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
		return false, ErrInvalidFilter.Because("%s must be true or false, not %s", name, quote(text))
	}
	return text == "true", nil
}

func (p parameters) statuses() ([]tx.Status, error) {
	given := p.values["status"]
	if all := tx.Statuses(); len(given) > len(all) {
		return nil, ErrInvalidFilter.Because("status is given %d times, there are %d", len(given), len(all))
	}
	var statuses []tx.Status
	for _, text := range given {
		if !slices.Contains(tx.Statuses(), tx.Status(text)) {
			return nil, ErrInvalidFilter.Because("there is no status %s, only: %s", quote(text), strings.Trim(fmt.Sprint(tx.Statuses()), "[]"))
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
		return 0, ErrInvalidLimit.Because("limit must be a number from 1 to %d, not %s", pageMax, quote(p.one("limit")))
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
