package delivery

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const (
	// cancelPlaces is the number of cancels, of all clients, that read their groups or visit a
	// chunk of members at once: a group's members, or the states of a chunk, are in memory
	// meanwhile.
	cancelPlaces = 6
	// cancelShare is the most places that one client can hold.
	cancelShare = 3
	// largeCancel is the number of members above which the answer to a cancel takes a place.
	// The members in an answer are in memory until it is written.
	largeCancel = 1_000
	// largePlaces is the number of such answers, of all clients, in memory at once.
	largePlaces = 24
	// largeShare is the most places of large answers that one client can hold.
	largeShare = 3
	// largeQueue is the number of one client's cancels that wait for such a place: each has the
	// members of its group in memory.
	largeQueue = 8
)

// NewCancels returns the places of cancels that read their groups or visit a chunk of members.
// They are not the places of lists: a cancel is urgent, and does not wait for the client's own
// lists. A client's cancels that wait are bounded by its requests in progress.
func NewCancels() *rest.Places { return rest.NewPlaces(cancelPlaces, cancelShare, 0) }

// NewLargeCancels returns the places of cancels with large answers. A cancel is recorded before it
// waits for such a place. If it gets none, it is carried out in the background.
func NewLargeCancels() *rest.Places {
	return rest.NewPlaces(largePlaces, largeShare, largeQueue)
}

// Canceler cancels groups for their owners.
type Canceler interface {
	Cancel(ctx context.Context, r canceler.Request, meta eventlog.Meta) (canceler.Answer, error)
}

// canceledGroup is the answer to POST …/cancel. Members are the members found by the cancel
// that the client owns, in order of acceptance. The cancel itself is the account's: it stops
// all members, including those submitted by other clients.
type canceledGroup struct {
	ChainID  chain.ID         `json:"chainId"`
	Sender   chain.Address    `json:"sender"`
	GroupID  chain.GroupID    `json:"groupId"`
	NonceKey chain.NonceKey   `json:"nonceKey"`
	Canceled int              `json:"canceled"` // number of canceled members, other clients' included
	Members  []canceledMember `json:"members"`
}

// canceledMember is the result for one member.
type canceledMember struct {
	TxHash   chain.Hash `json:"txHash"`
	Nonce    uint64     `json:"nonce"`
	Status   tx.Status  `json:"status"`
	Canceled bool       `json:"canceled"` // the member had not ended when the cancel was recorded
	Erased   bool       `json:"payloadErased"`
}

// cancelGroup answers POST /v1/senders/{sender}/groups/{groupId}/cancel.
func (a *api) cancelGroup(r rest.Request) error {
	in, err := a.readCancel(r)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	in.Admit = func(ctx context.Context, events int) (leave func(), err error) {
		if err := chargeGroup(r, events); err != nil {
			return nil, err
		}
		return r.Enter(ctx, a.Cancels)
	}
	in.Charge = func(carried, read int) error { return chargeMembers(r, carried, read) }
	release := func() {}
	defer func() { release() }()
	in.Hold = func(ctx context.Context, members int) (err error) {
		if members > largeCancel {
			var leave func()
			if leave, err = r.Enter(ctx, a.LargeCancels); err == nil {
				release = leave
			}
		}
		return err
	}
	in.Visit = func(ctx context.Context) (leave func(), err error) { return r.Enter(ctx, a.Cancels) }
	v := a.viewer(r)
	if v.members() != nil {
		in.Owned = func(s tx.State) bool { return slices.ContainsFunc(v.names, s.OwnedBy) }
	}
	answer, err := a.Canceler.Cancel(ctx, in, r.Meta())
	if err != nil {
		return err
	}
	out := canceledGroup{ChainID: answer.ID.Chain, Sender: answer.ID.Sender, GroupID: answer.ID.Group, NonceKey: answer.NonceKey}
	shown := answer.Members[:0] // in place: a second list would double an answer's memory
	for _, m := range answer.Members {
		if m.Canceled {
			out.Canceled++
		}
		mine, err := a.member(ctx, v, answer.ID, m)
		if err != nil {
			return err
		}
		if mine {
			shown = append(shown, m)
		}
	}
	return out.reply(r, shown)
}

// chargeGroup charges for the events of the group that a cancel reads, before it reads them: as
// much as for a stream that scans them, and at most the client's burst.
func chargeGroup(r rest.Request, events int) error {
	return r.ChargeUpToBurst((events + rest.ScanUnit - 1) / rest.ScanUnit)
}

// rowsUnit is the number of group members read for an answer that count as one request.
const rowsUnit = 10

// chargeMembers charges for a cancel before it visits the group's members: one for each member
// that it cancels, and one for every ten members in the answer. A group never counts as more
// than the client's burst, so no rate forbids canceling a large group for ever.
func chargeMembers(r rest.Request, carried, read int) error {
	return r.ChargeUpToBurst(carried + (read+rowsUnit-1)/rowsUnit)
}

// member reports whether the viewer may see a member of a group.
func (a *api) member(ctx context.Context, v viewer, id group.ID, m canceler.Member) (bool, error) {
	if v.members() == nil {
		return true, nil
	}
	if !m.Unnamed { // avoids reading the member's stream
		return m.Owned, nil
	}
	o, err := a.ownership(ctx, tx.Stream(id.Chain, m.Hash), 0)
	return v.owns(o), err
}

// reply writes the answer with these members. A large answer is encoded and sent in parts, so
// that it is never in memory as text.
func (g canceledGroup) reply(r rest.Request, members []canceler.Member) error {
	if len(members) <= largeCancel {
		g.Members = canceledMembers(members)
		return r.Reply(http.StatusOK, g)
	}
	g.Members = []canceledMember{}
	head, err := rest.Encode(g)
	if err != nil {
		return err
	}
	const end = "]}\n"
	r.Answering().Set("Content-Type", "application/json")
	w := r.Writer()
	w.WriteHeader(http.StatusOK)
	part, sep := bytes.TrimSuffix(head, []byte(end)), ""
	for some := range slices.Chunk(members, largeCancel) {
		list, _ := rest.Encode(canceledMembers(some)) // members can always be encoded
		part = append(append(part, sep...), bytes.Trim(list, "[]\n")...)
		if _, err := w.Write(part); err != nil {
			return nil // the client is gone
		}
		part, sep = part[:0], ","
	}
	_, _ = io.WriteString(w, end) // an error means that the client is gone
	return nil
}

func canceledMembers(members []canceler.Member) []canceledMember {
	all := make([]canceledMember, len(members))
	for i, m := range members {
		all[i] = canceledMember{m.Hash, m.Nonce, m.Status, m.Canceled, m.Erased}
	}
	return all
}

// readCancel reads the group and its owner's authorization: typed data in the body, or a
// signature over the group's id in the Authorization header.
func (a *api) readCancel(r rest.Request) (in canceler.Request, err error) {
	if in.Sender, in.Group, err = groupOf(r); err != nil {
		return in, err
	}
	q, err := readParameters(r, "chainId")
	if err != nil {
		return in, err
	}
	if in.Chain, err = q.chain(); err != nil {
		return in, err
	}
	header, given := signatureHeader(r)
	switch body := r.HasBody(); {
	case !body && given:
		in.Form = group.FormGroupID
		in.Signature, err = readSignature(header)
		return in, err
	case !body:
		r.Answering().Set("WWW-Authenticate", "Signature")
		return in, ErrSignatureRequired.Because("sign the typed data or the group's id, and send Authorization: Signature 0x…")
	case given:
		return in, canceler.ErrMalformed.Because("there is a signature in the header and also a body: send only one of them")
	}
	in.Form = group.FormTyped
	body, err := r.ReadBody()
	if err != nil {
		return in, err
	}
	d := rest.NewDocument(body)
	return in, d.Whole(func() error {
		return d.Object(
			rest.Member{Name: "expires", Read: func() (err error) {
				in.Expires, err = d.Number()
				return err
			}},
			rest.Member{Name: "signature", Read: func() error {
				text, err := d.Text()
				if err == nil {
					in.Signature, err = readSignature(text)
				}
				return err
			}},
		)
	})
}

// groupOf reads the sender and the group in a request's path.
func groupOf(r rest.Request) (sender chain.Address, id chain.GroupID, err error) {
	if sender, err = senderOf(r); err != nil {
		return sender, id, err
	}
	text, err := url.PathUnescape(mux.Vars(r.Request)["groupId"])
	if err != nil {
		return sender, id, rest.InParameter("groupId", ErrInvalidGroupID.Because("the path is not well escaped"))
	}
	if id, err = chain.ParseGroupID(text); err != nil {
		return sender, id, rest.InParameter("groupId", ErrInvalidGroupID.Because("%v", err))
	}
	return sender, id, nil
}

// signatureHeader returns the credentials of the Authorization header with the scheme
// Signature. Other schemes are ignored: an API key may be sent there.
func signatureHeader(r rest.Request) (credentials string, given bool) {
	for _, value := range r.Header.Values("Authorization") {
		scheme, after, _ := strings.Cut(value, " ")
		if strings.EqualFold(scheme, "Signature") {
			if given {
				return "", true // two Signature headers make both invalid
			}
			credentials, given = after, true
		}
	}
	return credentials, given
}

// signatureMax is the size in bytes of the longest signature, a WebAuthn signature.
const signatureMax = 1 + 2048

// readSignature reads hex in either case, with or without 0x.
func readSignature(text string) ([]byte, error) {
	digits := strings.TrimPrefix(text, "0x")
	if digits == "" || len(digits) > 2*signatureMax {
		return nil, canceler.ErrMalformed.Because("a signature must be 1 to %d bytes in hex", signatureMax)
	}
	sig, err := hex.DecodeString(digits)
	if err != nil {
		return nil, canceler.ErrMalformed.Because("a signature must be an even number of hex digits")
	}
	return sig, nil
}
