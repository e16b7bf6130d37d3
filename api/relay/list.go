package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// The number of rows on a page.
const (
	pageDefault = 50
	pageMax     = 200
)

// page is the answer to GET /v1/intents, newest request first.
type page struct {
	Intents    []*shown `json:"intents"`
	NextCursor string   `json:"nextCursor,omitempty"`
	HasMore    bool     `json:"hasMore"`
}

// list answers GET /v1/intents.
func (d *desk) list(r rest.Request) error {
	q, err := r.Query("client", "chainId", "signer", "pool", "key", "hash", "subject", "status",
		"target", "selector", "metadata", "nonce", "nonceKey", "since", "until", "limit", "cursor")
	if err != nil {
		return err
	}
	f, err := filters(q)
	if err != nil {
		return err
	}
	if f.Client, err = d.seen(r, q); err != nil {
		return err
	}
	// Until an intent is mined, its calls' data is known to its client alone.
	f.Mined = f.Selector != nil && (f.Client == nil || *f.Client != d.client(r))
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	list := listOf(f)
	var before eventlog.Position
	if q.Has("cursor") {
		if before, err = r.ReadCursor(q.Get("cursor"), list); err != nil {
			return err
		}
	}
	ctx, cancel := r.Work()
	defer cancel()
	rows, more, err := d.rows(ctx, r, f, before, limit)
	if err != nil {
		return err
	}
	if f.Hash != nil && len(rows) == 0 {
		r.FoundNothing()
	}
	out := page{Intents: []*shown{}, HasMore: more != 0}
	for _, row := range rows {
		out.Intents = append(out.Intents, shownOf(row))
	}
	if out.HasMore {
		out.NextCursor = r.Cursor(more, list)
		next := url.Values{}
		for name, values := range q {
			next[name] = values
		}
		next.Set("cursor", out.NextCursor)
		r.Answering().Set("Link", "</v1/intents?"+next.Encode()+`>; rel="next"`)
	}
	return r.ReplyRead(http.StatusOK, out)
}

// rows reads a page. If the filters identify one intent, it is read from its stream, so the
// client finds it at once.
func (d *desk) rows(ctx context.Context, r rest.Request, f intents.Filters, before eventlog.Position, limit int) ([]intents.Row, eventlog.Position, error) {
	if f.Client == nil || f.From == nil || f.Key == "" || f.Selector != nil {
		return rest.ReadPage(ctx, r, before, limit, func(ctx context.Context, before eventlog.Position, limit int) ([]intents.Row, eventlog.Position, error) {
			return d.Query.Step(ctx, f, before, limit)
		}, func(row intents.Row) eventlog.Position { return row.Position })
	}
	row, err := d.find(ctx, r, intent.ID(*f.Client, *f.From, f.Key))
	switch {
	case errors.Is(err, intent.ErrUnknown):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	switch {
	case !f.Fits(row) || before != 0 && row.Position >= before:
		return nil, 0, nil
	}
	for i := range row.State.Requested.Request.Calls {
		row.State.Requested.Request.Calls[i].Data = nil // as in every list
	}
	return []intents.Row{row}, 0, nil
}

// seen returns the client whose intents a list shows; nil for every client's.
func (d *desk) seen(r rest.Request, q url.Values) (*string, error) {
	reach := d.reach(r)
	if !q.Has("client") {
		return reach, nil
	}
	client := q.Get("client")
	if reach != nil && *reach != client {
		return nil, rest.ErrForbidden.Because("the key sees only the intents of another client")
	}
	return &client, nil
}

// filters reads the filters of a list, except for the client.
func filters(q url.Values) (f intents.Filters, err error) {
	f.Key, f.Subject = q.Get("key"), q.Get("subject")
	if f.Chain, err = rest.ReadChain(q); err != nil {
		return f, err
	}
	if q.Has("signer") {
		signer, err := chain.ParseAddress(q.Get("signer"))
		if err != nil {
			return f, rest.BadParameter("signer", "signer: %v", err)
		}
		// With a key, signer means the requested signer, which is part of the intent's
		// identity.
		if f.Signer = &signer; q.Has("key") {
			f.Signer, f.From = nil, &intent.From{Signer: &signer}
		}
	}
	if q.Has("pool") {
		if f.From != nil {
			return f, rest.BadParameter("pool", "with a key, signer and pool exclude each other")
		}
		f.From = &intent.From{Pool: q.Get("pool")}
	}
	if q.Has("hash") {
		hash, err := chain.ParseHash(q.Get("hash"))
		if err != nil {
			return f, rest.BadParameter("hash", "hash: %v", err)
		}
		f.Hash = &hash
	}
	for _, name := range []string{"key", "pool", "subject"} {
		if q.Has(name) && q.Get(name) == "" {
			return f, rest.BadParameter(name, "%s is empty", name)
		}
	}
	for _, text := range q["status"] {
		s := intent.Status(text)
		if !slices.Contains(intent.Statuses(), s) {
			return f, rest.BadParameter("status", "there is no status %.40q, only: %s", text, strings.Trim(fmt.Sprint(intent.Statuses()), "[]"))
		}
		if len(f.Statuses) == len(intent.Statuses()) {
			return f, rest.BadParameter("status", "more statuses than exist")
		}
		f.Statuses = append(f.Statuses, s)
	}
	slices.Sort(f.Statuses)
	f.Statuses = slices.Compact(f.Statuses)
	return f, searched(q, &f)
}

// searched reads the filters by calls, metadata, nonce and time.
func searched(q url.Values, f *intents.Filters) error {
	if q.Has("target") {
		target, err := chain.ParseAddress(q.Get("target"))
		if err != nil {
			return rest.ErrInvalidFilter.Because("target: %v", err)
		}
		f.Target = &target
	}
	if q.Has("selector") {
		f.Selector = new(chain.Selector)
		if f.Selector.UnmarshalText([]byte(q.Get("selector"))) != nil {
			return rest.ErrInvalidFilter.Because("selector must be 0x and 8 hex digits")
		}
	}
	if q.Has("metadata") {
		name, value, is := strings.Cut(q.Get("metadata"), "=")
		if !is || name == "" {
			return rest.ErrInvalidFilter.Because("metadata must be a name, = and a value")
		}
		f.Metadata = &intents.Entry{Name: name, Value: value}
	}
	if q.Has("nonce") {
		nonce, err := strconv.ParseUint(q.Get("nonce"), 10, 64)
		switch {
		case err != nil:
			return rest.ErrInvalidFilter.Because("nonce is not a decimal number below 2^64")
		case f.Signer == nil:
			return rest.ErrInvalidFilter.Because("a nonce belongs to a signer: name it, without a key")
		}
		f.Nonce = &nonce
	}
	if q.Has("nonceKey") {
		key, err := chain.ParseNonceKey(q.Get("nonceKey"))
		switch {
		case err != nil:
			return rest.ErrInvalidFilter.Because("nonceKey: %v", err)
		case f.Nonce == nil:
			return rest.ErrInvalidFilter.Because("nonceKey is for a nonce: name it")
		}
		f.NonceKey = &key
	}
	var err error
	if f.Since, err = secondsOf(q, "since"); err == nil {
		f.Until, err = secondsOf(q, "until")
	}
	if !f.Until.IsZero() {
		f.Until = f.Until.Add(time.Second - time.Microsecond) // the whole second is included
	}
	return err
}

// secondsOf reads a time in Unix seconds; zero if it is not given.
func secondsOf(q url.Values, name string) (t time.Time, err error) {
	if !q.Has(name) {
		return t, nil
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 34) // to the year 2514
	if err != nil {
		return t, rest.ErrInvalidFilter.Because("%s must be a time in Unix seconds", name)
	}
	return time.Unix(int64(n), 0), nil //nolint:gosec // bounded
}

func limitOf(q url.Values) (int, error) {
	if !q.Has("limit") {
		return pageDefault, nil
	}
	n, err := strconv.ParseUint(q.Get("limit"), 10, 64)
	if err != nil || n < 1 || n > pageMax {
		return 0, rest.InParameter("limit", rest.ErrInvalidLimit.Because("limit must be a number from 1 to %d", pageMax))
	}
	return int(n), nil
}

// listOf is a text that identifies a list. Cursors are bound to it.
func listOf(f intents.Filters) string {
	q := url.Values{"key": {f.Key}, "subject": {f.Subject}, "chainId": {f.Chain.String()}}
	if f.Client != nil {
		q.Set("client", *f.Client)
	}
	if f.From != nil {
		q.Set("from", f.From.Name())
	}
	if f.Signer != nil {
		q.Set("signer", f.Signer.String())
	}
	if f.Hash != nil {
		q.Set("hash", f.Hash.String())
	}
	if f.Target != nil {
		q.Set("target", f.Target.String())
	}
	if f.Selector != nil {
		q.Set("selector", fmt.Sprintf("%x", *f.Selector))
	}
	if f.Metadata != nil {
		q.Set("metadata", f.Metadata.Name+"="+f.Metadata.Value)
	}
	if f.Nonce != nil {
		q.Set("nonce", strconv.FormatUint(*f.Nonce, 10))
	}
	if f.NonceKey != nil {
		q.Set("nonceKey", f.NonceKey.String())
	}
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			q.Set(name, strconv.FormatInt(at.UnixMicro(), 10))
		}
	}
	for _, s := range f.Statuses {
		q.Add("status", string(s))
	}
	return "intents?" + q.Encode()
}
