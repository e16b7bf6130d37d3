// Package canceler lets an owner stop a group: the command is verified and recorded, then
// applied to every member, whose bytes are erased. The [Canceler] does both for a request.
// As a process manager it also finishes cancels that a crash has interrupted.
package canceler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

const (
	ErrMalformed      = eventlog.Refusal("malformed-authorization") // not a signature of any kind that owners have
	ErrSignature      = eventlog.Refusal("invalid-signature")       // the signature is invalid
	ErrNotOwner       = eventlog.Refusal("not-the-owner")           // the signature is valid, by another account
	ErrFormOff        = eventlog.Refusal("signature-form-off")      // the replayable form is not accepted here
	ErrAmbiguousChain = eventlog.Refusal("ambiguous-chain")         // the group is on several chains
)

// ErrUnfinished wraps the error of a cancel that is recorded but not finished; it will be
// finished.
var ErrUnfinished = errors.New("the cancel is recorded, but not carried out yet")

// Canceler cancels groups.
type Canceler struct {
	Store        port.Store
	Checkpoints  port.Checkpoints
	Transactions commands.Transactions
	Groups       commands.Groups
	Payloads     commands.PayloadRows
	// Chains are the chains that are served.
	Chains []chain.ID
	// CatchUp makes every transaction of these groups join that was accepted before the
	// call, so that a cancel finds it.
	CatchUp func(ctx context.Context, ids []group.ID) error
	// Check refuses bytes that are no signature. Verify returns the account that signed a
	// digest. Neither accepts an access key's signature.
	Check  func(sig []byte) error
	Verify func(sig []byte, digest chain.Hash) (chain.Address, chain.SignatureKind, error)
	// Deployment is the name that typed data must carry.
	Deployment string
	// GroupIDForm enables the replayable form, which can be shown to other services.
	GroupIDForm bool
	// Rows, when set, returns members' states from the read model, which may be behind. A
	// member without a row is left out.
	Rows func(ctx context.Context, id chain.ID, hashes []chain.Hash) (map[chain.Hash]tx.State, error)
	// Moved, when set, is called with the process manager's checkpoint.
	Moved func(at eventlog.Position)
	Now   func() time.Time
	Crash func(point string)
	Log   *slog.Logger
}

// Request is a request to cancel a group.
type Request struct {
	Chain     chain.ID // 0: the group's only chain
	Sender    chain.Address
	Group     chain.GroupID
	Form      group.Form
	Signature []byte
	Expires   uint64 // of the typed form, in Unix seconds
	// Admit, when set, is called before the groups that the request may mean are read: events is
	// the number of their events. It may wait. leave, which may be called twice, is called when
	// they have been read. Its error ends the request.
	Admit func(ctx context.Context, events int) (leave func(), err error)
	// Charge, when set, is called before members are visited: carried is the number of
	// members to cancel, read the number that is only read for the answer. Its error ends
	// the request.
	Charge func(carried, read int) error
	// Hold, when set, is called after the cancel is recorded and before members are visited. It
	// may wait. members is the number of members in the answer: they are in memory until the
	// caller drops the answer. After its error the cancel is unfinished.
	Hold func(ctx context.Context, members int) error
	// Visit, when set, is called before each chunk of members is visited. It may wait. leave is
	// called when the states of the chunk are forgotten. After its error the cancel is unfinished.
	Visit func(ctx context.Context) (leave func(), err error)
	// Owned, when set, sets [Member.Owned].
	Owned func(tx.State) bool
}

// ExpiryMax bounds how far ahead a typed authority may expire: a group remembers
// authorities until they expire.
const ExpiryMax = 24 * time.Hour

// Answer is a canceled group, with the result for each member that the cancel found.
type Answer struct {
	ID       group.ID
	NonceKey chain.NonceKey
	Members  []Member
}

// Member is the result for one member. An answer has one for each member of a group, so it is
// small: it has no [tx.State].
type Member struct {
	Hash   chain.Hash
	Nonce  uint64
	Status tx.Status
	// Canceled: the member had not ended when the cancel was recorded. Erased: its bytes are.
	Canceled, Erased bool
	// Owned is the result of [Request.Owned]. Unnamed: the member was recorded before clients had
	// names, so Owned does not count.
	Owned, Unnamed bool
}

// Cancel records the owner's command and executes it. A repeated request answers for the
// same members and records nothing more. After a transient error a retry is safe. After
// [ErrUnfinished] the cancel is finished in any case.
func (c *Canceler) Cancel(ctx context.Context, r Request, meta eventlog.Meta) (Answer, error) {
	authorities, err := c.authorities(r)
	if err != nil {
		return Answer{}, err
	}
	leave, err := c.admit(ctx, r, authorities)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	id, by, err := c.locate(ctx, authorities)
	if err != nil {
		return Answer{}, err
	}
	origin, err := handler.Begin(c.Groups.Random, meta)
	if err != nil {
		return Answer{}, err
	}
	stream := id.Stream()
	known, err := c.Groups.Load(ctx, stream)
	if err != nil {
		return Answer{}, err
	}
	if err := r.charge(known.State, by); err != nil {
		return Answer{}, err
	}
	result, err := c.Groups.HandleFrom(ctx, stream, known, group.Cancel{By: by, At: c.Now()}, origin)
	if err != nil {
		return Answer{}, err
	}
	c.crash("cancel.recorded")
	if result.Added > 0 {
		meta.Causation = eventlog.DeriveID(stream, origin.ID, 0)
		c.Log.Info("group canceled", "chain", id.Chain, "sender", id.Sender, "group", id.Group, "members", result.State.Canceled, "form", by.Form)
	}
	found, key := result.State.Found(by), result.State.NonceKey
	leave()
	members, err := c.visit(ctx, r, run{id: id, found: found, meta: meta, enter: r.Visit})
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return Answer{ID: id, NonceKey: key, Members: members}, nil
}

// visit carries out a recorded cancel for its request.
func (c *Canceler) visit(ctx context.Context, r Request, over run) ([]Member, error) {
	if r.Hold != nil {
		if err := r.Hold(ctx, len(over.found)); err != nil {
			return nil, err
		}
	}
	members := make([]Member, len(over.found))
	over.see = func(i int, s tx.State) {
		members[i] = Member{
			Hash: over.found[i].Hash, Nonce: over.found[i].Nonce, Status: s.Status, Canceled: s.Canceled, Erased: s.Erased,
			Owned: r.Owned != nil && r.Owned(s), Unnamed: s.Accepted.Client == "",
		}
	}
	return members, c.carry(ctx, over)
}

// admit asks for the admission of a request to the groups that it may mean. It reads none of
// their events.
func (c *Canceler) admit(ctx context.Context, r Request, authorities map[group.ID]group.Authority) (leave func(), err error) {
	if r.Admit == nil {
		return func() {}, nil
	}
	events := 0
	for _, id := range group.InOrder(authorities) {
		version, err := c.Store.Version(ctx, id.Stream())
		if err != nil {
			return nil, err
		}
		events += int(version)
	}
	return r.Admit(ctx, events)
}

// charge charges for the members that an authority will find, or has found.
func (r Request) charge(s group.State, by group.Authority) error {
	if r.Charge == nil {
		return nil
	}
	if shown, again := s.Shown[by.Digest]; again {
		return r.Charge(0, shown.Members)
	}
	return r.Charge(s.Members-s.Canceled, s.Canceled)
}

// authorities verifies the signature for each chain that the request may concern. The
// replayable form names no chain, typed data names one.
func (c *Canceler) authorities(r Request) (map[group.ID]group.Authority, error) {
	if err := c.Check(r.Signature); err != nil {
		return nil, ErrMalformed.Because("%s", detail(err))
	}
	switch now := uint64(max(c.Now().Unix(), 0)); {
	case r.Form == group.FormGroupID && !c.GroupIDForm:
		return nil, ErrFormOff.Because("sign the typed data instead")
	case r.Form == group.FormTyped && r.Expires > now+uint64(ExpiryMax/time.Second):
		return nil, ErrMalformed.Because("expires must be within %s: at most %d", ExpiryMax, now+uint64(ExpiryMax/time.Second))
	}
	chains := c.Chains
	if r.Chain != 0 {
		chains = []chain.ID{r.Chain}
	}
	verified, refused := map[group.ID]group.Authority{}, ErrSignature.Because("no chain is served")
	for _, on := range chains {
		id := group.ID{Chain: on, Sender: r.Sender, Group: r.Group}
		by, err := c.authority(r, id)
		if err == nil {
			verified[id] = by
		} else if errors.Is(refused, ErrSignature) {
			refused = err // another signer is a more useful reason than an invalid signature
		}
	}
	if len(verified) == 0 {
		return nil, refused
	}
	return verified, nil
}

// authority verifies the signature for one chain's group.
func (c *Canceler) authority(r Request, id group.ID) (group.Authority, error) {
	by := group.Authority{Form: r.Form, Digest: group.Digest(r.Group)}
	if r.Form == group.FormTyped {
		by.Digest = group.Wish{ID: id, Deployment: c.Deployment, Expires: r.Expires}.Digest()
		by.Expires = r.Expires
	}
	account, kind, err := c.Verify(r.Signature, by.Digest)
	switch {
	case err != nil:
		return by, ErrSignature.Because("%s", detail(err))
	case account != r.Sender:
		return by, ErrNotOwner.Because("the signature is not the sender's over this")
	}
	by.Signature = kind
	return by, nil
}

// detail returns the detail of a *chain.Malformed, or the error's text.
func detail(err error) string {
	var malformed *chain.Malformed
	if errors.As(err, &malformed) {
		return malformed.Detail
	}
	return err.Error()
}

// locate returns the one group that is meant, after all its accepted transactions have
// joined.
func (c *Canceler) locate(ctx context.Context, verified map[group.ID]group.Authority) (group.ID, group.Authority, error) {
	ids := group.InOrder(verified)
	if err := c.CatchUp(ctx, ids); err != nil {
		return group.ID{}, group.Authority{}, fmt.Errorf("process the accepted transactions: %w", err)
	}
	var there []group.ID
	for _, id := range ids {
		version, err := c.Store.Version(ctx, id.Stream())
		if err != nil {
			return group.ID{}, group.Authority{}, err
		}
		if version > 0 {
			there = append(there, id)
		}
	}
	switch len(there) {
	case 0:
		return group.ID{}, group.Authority{}, group.ErrUnknown
	case 1:
		return there[0], verified[there[0]], nil
	}
	return group.ID{}, group.Authority{}, ErrAmbiguousChain.Because("the group is on %d chains: name one with chainId", len(there))
}

func (c *Canceler) crash(point string) {
	if c.Crash != nil {
		c.Crash(point)
	}
}

// CrashPoints lists the places in this package where a test may kill the process.
func CrashPoints() []string {
	return []string{
		"cancel.recorded", // the group is canceled, no member is
		"cancel.member",   // some members are canceled, their bytes not erased
		"cancel.erased",   // bytes are erased, not yet recorded
	}
}
