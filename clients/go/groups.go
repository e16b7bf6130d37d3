package watchtower

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Group is a group of one sender's transactions with the same nonce key.
type Group struct {
	ChainID       uint64        `json:"chainId"`
	GroupID       string        `json:"groupId"`
	NonceKey      string        `json:"nonceKey"`
	Display       *NonceKeyInfo `json:"display"` // nil unless the nonce key has the explicit grouping format
	StartAt       int64         `json:"startAt"`
	EndAt         int64         `json:"endAt"`
	NextPaymentAt *int64        `json:"nextPaymentAt"` // nil if no payment is left
}

// GroupPlan is a group with its members and its cancel plan.
type GroupPlan struct {
	Group
	Sender     string       `json:"sender"`
	Members    []Member     `json:"members"` // in order of nonce
	CancelPlan Invalidation `json:"cancelPlan"`
}

// Member is a transaction as its group shows it.
type Member struct {
	TxHash          string  `json:"txHash"`
	NonceKey        string  `json:"nonceKey"`
	Nonce           uint64  `json:"nonce"`
	Status          Status  `json:"status"`
	Finalized       bool    `json:"finalized"`
	Canceled        bool    `json:"canceled"`
	EligibleAt      int64   `json:"eligibleAt"`
	ExpiresAt       int64   `json:"expiresAt"` // 0 means never
	NextActionAt    int64   `json:"nextActionAt"`
	Parked          bool    `json:"parked"` // too many open transactions with lower nonces come first
	WaitingForNonce *uint64 `json:"waitingForNonce"`
	WaitingSince    int64   `json:"waitingSince"`
}

// NonceKeyInfo is the parts of a nonce key of the explicit grouping format.
type NonceKeyInfo struct {
	Kind  string `json:"kind"`
	Scope string `json:"scope"`
	Group string `json:"group"`
	Memo  string `json:"memo"`
}

// Invalidation lists the nonces that the owner must use up on chain to make the group's
// transactions invalid for ever.
type Invalidation struct {
	NonceKey string   `json:"nonceKey"`
	Nonces   []uint64 `json:"nonces"`
	// Truncated means that there are more nonces; Nonces are the highest 10,000.
	Truncated bool `json:"truncated"`
	// CurrentNonce is the nonce key's next nonce on the chain; nil if it is not known.
	CurrentNonce *uint64 `json:"currentNonce"`
	// AlreadyInvalidated is nil if the chain could not be asked; Reason then says why.
	AlreadyInvalidated *bool  `json:"alreadyInvalidated"`
	Reason             string `json:"reason"`
}

// GroupFilters restrict a list of groups; the zero value lists all groups of the sender.
type GroupFilters struct {
	ChainID uint64
	Active  bool // only groups that end in the future
}

// Groups yields a sender's groups, page by page. An error is the last value that it yields.
func (c *Client) Groups(ctx context.Context, sender string, f GroupFilters) iter.Seq2[Group, error] {
	query := with(onChain(f.ChainID), "limit", "500")
	if f.Active {
		query.Set("active", "true")
	}
	return pages(query, func(query url.Values) (page []Group, next url.Values, err error) {
		r := get(groupsPath(sender), query)
		header, body, err := c.caller().answer(ctx, r, true)
		if err == nil {
			err = decode(r, body, &page)
		}
		next, _ = nextPage(header)
		return page, next, err
	})
}

// nextPage returns the query of the next page from the Link header (RFC 8288).
func nextPage(header http.Header) (url.Values, bool) {
	target, _, found := strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), `>; rel="next"`)
	if !found {
		return nil, false
	}
	next, err := url.Parse(target)
	if err != nil {
		return nil, false
	}
	return next.Query(), true
}

func groupsPath(sender string) string { return "/v1/senders/" + url.PathEscape(sender) + "/groups" }

func groupPath(sender, groupID string) string {
	return groupsPath(sender) + "/" + url.PathEscape(groupID)
}

// onChain is a query for a chain; empty for 0.
func onChain(id uint64) url.Values {
	if id == 0 {
		return url.Values{}
	}
	return url.Values{"chainId": {strconv.FormatUint(id, 10)}}
}

// Group returns one group with all its members. chainID must not be 0 if the group exists on
// several chains.
func (c *Client) Group(ctx context.Context, chainID uint64, sender, groupID string) (GroupPlan, error) {
	var whole GroupPlan
	for query := with(onChain(chainID), "limit", "1000"); ; {
		var page struct {
			GroupPlan
			NextCursor string
		}
		if err := c.call(ctx, get(groupPath(sender, groupID), query), &page); err != nil {
			return GroupPlan{}, err
		}
		page.Members = append(whole.Members, page.Members...)
		if whole = page.GroupPlan; page.NextCursor == "" {
			return whole, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}
