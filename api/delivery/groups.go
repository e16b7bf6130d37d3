package delivery

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/groups"
)

// Groups holds the dependencies for showing groups.
type Groups struct {
	Query groups.Query
	// Checkpoints has the checkpoint of the process manager that makes transactions join their
	// groups.
	Checkpoints port.Checkpoints
	// Nonces has an entry for each chain that is served. It reads nonces in a client's name.
	Nonces map[chain.ID]func(client string) Nonces
}

// Nonces reads nonces from a chain.
type Nonces interface {
	// Head is the newest block.
	Head(ctx context.Context) (chain.Block, error)
	// Nonces returns the next nonce of each sequence, as of a block.
	Nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error)
}

// listedGroup is one group in a list.
type listedGroup struct {
	ChainID       chain.ID       `json:"chainId"`
	GroupID       chain.GroupID  `json:"groupId"`
	NonceKey      chain.NonceKey `json:"nonceKey"`
	Display       *nonceKeyInfo  `json:"display,omitempty"`
	StartAt       uint64         `json:"startAt"`
	EndAt         uint64         `json:"endAt"`
	NextPaymentAt *uint64        `json:"nextPaymentAt,omitempty"`
}

// groupsPage is the answer to GET /v1/senders/{sender}/groups?form=page.
type groupsPage struct {
	Groups     []listedGroup `json:"groups"`
	NextCursor string        `json:"nextCursor,omitempty"`
	HasMore    bool          `json:"hasMore"`
}

// shownGroup is one group with a page of its members.
type shownGroup struct {
	listedGroup
	Sender     chain.Address `json:"sender"`
	Members    []groupMember `json:"members"`
	NextCursor string        `json:"nextCursor,omitempty"`
	HasMore    bool          `json:"hasMore"`
	CancelPlan cancelPlan    `json:"cancelPlan"`
}

// groupMember is a transaction as its group shows it.
type groupMember struct {
	TxHash          chain.Hash     `json:"txHash"`
	NonceKey        chain.NonceKey `json:"nonceKey"`
	Nonce           uint64         `json:"nonce"`
	Status          tx.Status      `json:"status"`
	Finalized       bool           `json:"finalized"`
	Canceled        bool           `json:"canceled,omitempty"`
	EligibleAt      uint64         `json:"eligibleAt"`
	ExpiresAt       uint64         `json:"expiresAt,omitempty"`
	NextActionAt    int64          `json:"nextActionAt,omitempty"`
	Parked          bool           `json:"parked,omitempty"`
	WaitingForNonce *uint64        `json:"waitingForNonce,omitempty"`
	WaitingSince    int64          `json:"waitingSince,omitempty"`
}

// cancelPlan is the on-chain action by which the owner invalidates the group.
type cancelPlan struct {
	NonceKey  chain.NonceKey `json:"nonceKey"`
	Nonces    []uint64       `json:"nonces"`
	Truncated bool           `json:"truncated,omitempty"`
	// CurrentNonce and AlreadyInvalidated are null if they are unknown; Reason then says why.
	CurrentNonce       *uint64 `json:"currentNonce"`
	AlreadyInvalidated *bool   `json:"alreadyInvalidated"`
	Reason             string  `json:"reason,omitempty"`
}

// listGroups answers GET /v1/senders/{sender}/groups.
func (a *api) listGroups(r rest.Request) error {
	sender, err := senderOf(r)
	if err != nil {
		return err
	}
	q, err := readParameters(r, "chainId", "limit", "active", "cursor", "form")
	if err != nil {
		return err
	}
	paged, err := q.paged()
	if err != nil {
		return err
	}
	var f groups.Filters
	next := url.Values{} // the filters in canonical form
	if f.Chain, err = q.chain(); err != nil {
		return err
	}
	if f.Chain != 0 {
		next.Set("chainId", f.Chain.String())
	}
	active, err := q.flag("active")
	if err != nil {
		return err
	}
	if active {
		now := uint64(max(a.Now().Unix(), 0))
		f.EndAfter = &now
		next.Set("active", "true")
	}
	limit, err := q.limit()
	if err != nil {
		return err
	}
	v := a.viewer(r)
	f.Owners = v.members()
	path := "/v1/senders/" + sender.String() + "/groups"
	bound := path + "?" + next.Encode() + v.list() // the cursors are bound to this text
	var before eventlog.Position
	if q.values.Has("cursor") {
		if before, err = r.ReadCursor(q.one("cursor"), bound); err != nil {
			return err
		}
	}
	ctx, cancel := r.Work()
	defer cancel()
	if err := a.caughtUp(ctx, r, v, sender); err != nil {
		return err
	}
	leave, err := a.enterGroups(ctx, r, v, sender, nil)
	if err != nil {
		return err
	}
	defer leave()
	found, err := a.Groups.Query.List(ctx, sender, f, before, limit+1)
	leave()
	if err != nil {
		return err
	}
	out := groupsPage{Groups: make([]listedGroup, min(len(found), limit)), HasMore: len(found) > limit}
	for i := range out.Groups {
		out.Groups[i] = listedOf(found[i])
	}
	if paged {
		next.Set("form", formPage)
	}
	if out.HasMore {
		out.NextCursor = r.Cursor(found[limit-1].Position, bound)
		linkNext(r, path, next, limit, out.NextCursor)
	}
	if !paged {
		return r.ReplyRead(http.StatusOK, out.Groups)
	}
	return r.ReplyRead(http.StatusOK, out)
}

// The two forms of a list of groups: the list alone, as version 0.1 answers, or an object with the
// next page's cursor, as all other lists.
const (
	formList = "list"
	formPage = "page"
)

// paged reads whether the answer is to be a page.
func (p parameters) paged() (bool, error) {
	if form := p.one("form"); p.values.Has("form") && form != formList && form != formPage {
		return false, rest.BadParameter("form", "form must be %s or %s, not %s", formList, formPage, rest.Quote(form))
	}
	return p.one("form") == formPage, nil
}

// group answers GET /v1/senders/{sender}/groups/{groupId}.
func (a *api) group(r rest.Request) error {
	sender, groupID, err := groupOf(r)
	if err != nil {
		return err
	}
	q, err := readParameters(r, "chainId", "limit", "cursor")
	if err != nil {
		return err
	}
	id, err := q.chain()
	if err != nil {
		return err
	}
	limit, err := q.limit()
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	v := a.viewer(r)
	if err := a.caughtUp(ctx, r, v, sender); err != nil {
		return err
	}
	leave, err := a.enterGroups(ctx, r, v, sender, &groupID)
	if err != nil {
		return err
	}
	defer leave()
	r.SeekAnew() // the time until here depends on the log's end, not on the group
	g, err := a.findGroup(ctx, v, id, sender, groupID)
	if err != nil {
		return err
	}
	shown := shownGroup{listedGroup: listedOf(g), Sender: sender}
	path := "/v1/senders/" + sender.String() + "/groups/" + groupID.String()
	next := url.Values{"chainId": {g.Chain.String()}}
	bound := path + "?" + next.Encode() + v.list()
	members, more, err := a.membersAfter(ctx, r, v, g, q, bound, limit)
	if err != nil {
		return err
	}
	if more {
		last := members[limit-1]
		shown.HasMore = true
		shown.NextCursor = r.PlaceCursor(bound, last.Nonce, uint64(last.Position))
		linkNext(r, path, next, limit, shown.NextCursor)
	}
	if shown.Members, err = a.members(ctx, v, g.Chain, members); err != nil {
		return err
	}
	if shown.CancelPlan, err = a.cancelPlan(ctx, v, g, leave); err != nil {
		return err
	}
	return r.ReplyRead(http.StatusOK, shown)
}

// enterGroups waits for a list place, and charges for an answer about a sender's groups, or
// about one of them. It charges one unit for each hundred of the client's own transactions that
// the answer sums up, and never more than the client's burst.
func (a *api) enterGroups(ctx context.Context, r rest.Request, v viewer, sender chain.Address, groupID *chain.GroupID) (leave func(), err error) {
	if leave, err = r.EnterList(ctx); err != nil || !v.sums(sender) {
		return leave, err
	}
	n, err := a.Groups.Query.Owned(ctx, sender, groupID, v.members(), rest.CountedMax)
	if err == nil {
		err = r.ChargeUpToBurst(max(1, n*rest.StepUnits/projections.StepRows))
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// membersAfter reads a page of the members that the viewer may see, and reports whether there
// are more.
func (a *api) membersAfter(ctx context.Context, r rest.Request, v viewer, g groups.Group, q parameters, bound string, limit int) ([]groups.Member, bool, error) {
	var after *groups.Member
	if q.values.Has("cursor") {
		place, err := r.ReadPlace(q.one("cursor"), bound, 2)
		if err != nil {
			return nil, false, err
		}
		after = &groups.Member{Nonce: place[0], Position: eventlog.Position(place[1])}
	}
	members, err := a.Groups.Query.Members(ctx, g.ID, v.members(), after, limit+1)
	return members[:min(len(members), limit)], len(members) > limit, err
}

// findGroup finds one group. Without a chain (0), it refuses a group id that the sender uses on
// several chains. A group without a member that the viewer may see is unknown.
func (a *api) findGroup(ctx context.Context, v viewer, id chain.ID, sender chain.Address, groupID chain.GroupID) (groups.Group, error) {
	found, err := a.Groups.Query.Find(ctx, id, sender, groupID, groups.Filters{Owners: v.members()})
	switch {
	case err != nil:
		return groups.Group{}, err
	case len(found) == 0:
		return groups.Group{}, group.ErrUnknown
	case len(found) > 1:
		chains := make([]chain.ID, len(found))
		for i, g := range found {
			chains[i] = g.Chain
		}
		return groups.Group{}, ErrAmbiguousChain.Because("it is on the chains %v: name one with chainId", chains)
	}
	return found[0], nil
}

// members shows transactions with their present state in the due queue.
func (a *api) members(ctx context.Context, v viewer, id chain.ID, members []groups.Member) ([]groupMember, error) {
	hashes := make([]chain.Hash, len(members))
	for i, m := range members {
		hashes[i] = m.Hash
	}
	rows, err := a.Query.FindAll(ctx, id, hashes)
	if err != nil {
		return nil, err
	}
	described, err := a.describe(ctx, v, rows)
	if err != nil {
		return nil, err
	}
	byHash := map[chain.Hash]*transaction{}
	for _, t := range described {
		byHash[t.TxHash] = t
	}
	shown := make([]groupMember, 0, len(members))
	for _, hash := range hashes {
		t := byHash[hash]
		if t == nil {
			continue // retired between the two reads
		}
		shown = append(shown, groupMember{
			TxHash: t.TxHash, NonceKey: t.NonceKey, Nonce: t.Nonce, Status: t.Status, Finalized: t.Finalized, Canceled: t.Canceled,
			EligibleAt: t.EligibleAt, ExpiresAt: t.ExpiresAt, NextActionAt: t.NextActionAt,
			Parked: t.Parked, WaitingForNonce: t.WaitingForNonce, WaitingSince: t.WaitingSince,
		})
	}
	return shown, nil
}

const (
	planMax    = 10_000          // most nonces in a cancel plan; the highest are kept
	nonceLimit = 2 * time.Second // timeout for asking the chain for a nonce
)

// cancelPlan is about the members that the viewer is shown. It calls read when it has read
// the database, and before it asks a node.
func (a *api) cancelPlan(ctx context.Context, v viewer, g groups.Group, read func()) (cancelPlan, error) {
	nonces, err := a.Groups.Query.Nonces(ctx, g.ID, v.members(), planMax+1)
	read()
	if err != nil {
		return cancelPlan{}, err
	}
	truncated := len(nonces) > planMax
	nonces = nonces[:min(len(nonces), planMax)]
	current, reason := a.currentNonce(ctx, v.client(), g)
	p := group.PlanCancel(g.NonceKey, nonces, current)
	shown := cancelPlan{NonceKey: p.NonceKey, Nonces: append([]uint64{}, p.Nonces...), Truncated: truncated, Reason: reason}
	if p.Known {
		shown.CurrentNonce, shown.AlreadyInvalidated = &p.Current, &p.Invalidated
	}
	return shown, nil
}

// currentNonce asks the chain in the client's name for the next nonce of the group's key, or
// returns the reason why it is unknown.
func (a *api) currentNonce(ctx context.Context, client string, g groups.Group) (current *uint64, reason string) {
	if g.NonceKey.IsExpiring() {
		return nil, "transactions with the expiring nonce key have no sequence: they end with their validBefore, and no nonce invalidates them"
	}
	on := a.Groups.Nonces[g.Chain]
	if on == nil {
		return nil, fmt.Sprintf("chain %s is not served here any more", g.Chain)
	}
	ctx, cancel := context.WithTimeout(ctx, nonceLimit)
	defer cancel()
	node := on(client)
	head, err := node.Head(ctx)
	if err == nil {
		var nonces []uint64
		if nonces, err = node.Nonces(ctx, head, []chain.Sequence{{Chain: g.Chain, Sender: g.Sender, Key: g.NonceKey}}); err == nil {
			return &nonces[0], ""
		}
	}
	if a.unread.Due(g.Chain.String(), a.Now()) {
		a.Log.Warn("the nonce of a group could not be read", "chain", g.Chain, "sender", g.Sender, "group", g.Group, "err", err)
	}
	return nil, "no node of the chain gave a reliable answer"
}

func listedOf(g groups.Group) listedGroup {
	return listedGroup{
		ChainID: g.Chain, GroupID: g.Group, NonceKey: g.NonceKey, Display: infoOf(g.NonceKey),
		StartAt: g.StartAt, EndAt: g.EndAt, NextPaymentAt: g.Next,
	}
}

// linkNext sets the Link header to the next page.
func linkNext(r rest.Request, path string, filters url.Values, limit int, cursor string) {
	filters.Set("limit", strconv.Itoa(limit))
	filters.Set("cursor", cursor)
	r.Answering().Set("Link", "<"+path+"?"+filters.Encode()+`>; rel="next"`)
}

// senderOf reads the sender in a request's path.
func senderOf(r rest.Request) (chain.Address, error) {
	text, err := url.PathUnescape(mux.Vars(r.Request)["sender"])
	if err != nil {
		return chain.Address{}, rest.InParameter("sender", rest.ErrInvalidAddress.Because("the path is not well escaped"))
	}
	sender, err := chain.ParseAddress(text)
	if err != nil {
		return sender, rest.InParameter("sender", rest.ErrInvalidAddress.Because("%v", err))
	}
	return sender, nil
}
