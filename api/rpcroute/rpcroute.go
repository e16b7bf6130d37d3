// Package rpcroute has what delivery's routes of /rpc and the packages that answer their calls say to each
// other. So none imports another. It imports api/rest, and no other package of api.
package rpcroute

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Endpoint answers requests to /rpc; package jsonrpc provides it.
type Endpoint struct {
	// Answer answers a request; its context ends when the answer has been sent. It returns nil
	// if the request holds only notifications. The only error is the error of Charge.
	Answer func(ctx context.Context, r Request) ([]byte, error)
	// Within bounds how long an answer may take.
	Within time.Duration
}

// Request is one request to /rpc.
type Request struct {
	Chain string // from the path; empty if the path has none
	Pool  string // from the path; empty if the path has none
	Body  []byte
	// Key is the request's API key; ok is false if it has none.
	Key func() (key access.Key, ok bool)
	// IdempotencyKeys are the values of the header Idempotency-Key.
	IdempotencyKeys []string
	Meta            eventlog.Meta // for the events that the request causes
	// Client is the client that sent the request.
	Client string
	// Submit accepts the transactions that the client may submit.
	Submit *commands.Submit
	// Shows reports whether the client may see everything about a transaction that the service
	// holds, including its signature and calls.
	Shows func(ctx context.Context, held tx.State) (bool, error)
	// Search begins the search for a transaction that may be another client's. If nothing is
	// shown of it, the call waits for absent before it is answered, so that the time of the answer
	// does not depend on the search.
	Search func() (absent func(ctx context.Context))
	// Counts returns which transactions of a sender count as the client's own.
	Counts func(sender chain.Address) Counts
	// Charge brings the request's total charge to n calls, before they are decoded.
	Charge func(n int) error
	// Decode has read return a transaction's bytes, and decode make the text that shows it, in one of
	// the places for that. The call costs one unit for each 16 KiB of the bytes or of the text.
	Decode func(ctx context.Context, read func(context.Context) (raw []byte, err error), decode func(raw []byte) (text []byte, err error)) (text []byte, err error)
	// NextFree has read find the next free nonce of a sequence, at or after from; each of its
	// queries takes a place. The call costs one unit for each hundred nonces in between.
	NextFree func(ctx context.Context, from uint64, read func(ctx context.Context, place rest.Place) (next uint64, err error)) (next uint64, err error)
	// List takes a place among the reads of lists, for each query of a read model.
	List rest.Place
	// Weigh charges one unit for each 16 KiB of a node's answer, beyond the first.
	Weigh func(bytes int)
	// Rest lets a call wait, unless the client's share of waiting requests is used up. leave
	// ends the wait.
	Rest func() (leave func(), ok bool)
	// Again charges one unit for another round of calls to nodes while a call waits, and reports
	// whether the client could pay for it now.
	Again func() bool
	// Problem returns the problem for an error.
	Problem func(error) rest.Problem
}

// Counts selects the transactions of one sender that count as a client's own: all of them, or
// the transactions submitted by clients with these names. Without names there are none.
type Counts struct {
	All     bool
	Clients []string
}
