package app

import (
	"context"
	"time"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// served is one chain on which intents are carried out.
type served struct {
	*worker.Relayer
	relay   *relay
	signers []chain.Address // signers with a key here
	node    node
}

func (r *relay) serve(id chain.ID, pool *rpc.Pool) *served {
	format, on := r.settings.Formats.Of(id), r.settings.On(id)
	n := nodeOf(r.settings, id, pool)
	c := &served{relay: r, node: n, Relayer: &worker.Relayer{
		Chain: id, Lanes: r.lanes, Intents: r.intents, Transactions: r.in.Transactions, Vault: r.in.Vault,
		Queue: r.queue, Node: n, Blocks: r.in.Ports.Storage.Board, Fees: pricing{n.Estimator, id, on.Fee.Most().MaxFee, r.metrics}, Format: written(format),
		Delivery: r.in.Submit.Unbounded(), News: &worker.News{Chain: id, Store: r.in.Store, Log: r.log},
		Guard: guarding{r.guard, r.metrics}, Told: r.turned, Settings: on.Lane, Holder: r.in.Settings.Holder,
		Now: r.in.Ports.Now, Crash: r.in.Ports.Crash, Log: r.log, Purses: &worker.Purses{},
	}}
	for _, a := range r.ring.Addresses() {
		if signer, err := r.ring.Signer(a); err == nil && (format == settings.Tempo || signer.Kind() == chain.Secp256k1) {
			c.signers = append(c.signers, a)
			r.metrics.Expect(id, a)
		}
	}
	r.metrics.Serve(id, on.Fee.Ceiling)
	return c
}

// lane builds a lane of a signer whose key is here. A lane of another nonce key than 0 exists only
// because clients ask for it, so it reads the chain in their names; client is the first of them.
func (c *served) lane(signer chain.Address, key chain.NonceKey, client string) *worker.Lane {
	l := &worker.Lane{
		Relayer: c.Relayer, ID: chain.Sequence{Chain: c.Chain, Sender: signer, Key: key},
		Signer: c.relay.signer(signer), Pools: c.relay.settings.Pools.Of(signer), OnlyAsked: key != protocolKey,
		Client: client,
	}
	if l.OnlyAsked {
		l.Behalf = c.behalf
	}
	if payer := c.relay.settings.Signers.FeePayer; payer != nil && c.Format.PayerPayload != nil {
		if held, err := c.relay.ring.Signer(*payer); err == nil {
			l.Payer = counted{held, c.relay.metrics}
		}
	}
	return l
}

// behalf returns the chain as read in a client's name, with the client's share of the calls for
// repeated attempts.
func (c *served) behalf(client string) worker.Chain {
	n := c.node
	n.client = n.reader.Repeating(client)
	return n
}

// signer returns the signer of an address in the ring.
func (r *relay) signer(a chain.Address) worker.Signer {
	signer, err := r.ring.Signer(a)
	if err != nil {
		panic(err) // the address comes from the ring
	}
	return counted{signer, r.metrics}
}

// tempoFirst is the additional gas on Tempo for an account's first transaction, or the first
// under a nonce key: 250,000 for new state, plus the cost of storing that. Source: TIP-1000.
const tempoFirst = 300_000

// written returns the format in which transactions are written, and read as delivery reads them.
func written(f settings.Format) worker.Format {
	if f == settings.Tempo {
		return worker.Format{
			Type: tempo.Type, First: tempoFirst, Payload: tempo.Payload, PayerPayload: tempo.PayerPayload, Encode: tempo.Encode, Decode: delivery.Decode,
		}
	}
	kind := uint8(ethereum.DynamicFee)
	if f == settings.Legacy {
		kind = ethereum.Legacy
	}
	return worker.Format{
		Type: kind, Payload: ethereum.Payload, Decode: delivery.Decode,
		Encode: func(tx chain.Unsigned, signature, _ []byte) ([]byte, error) { return ethereum.Encode(tx, signature) },
	}
}

// node reads a chain from its endpoints.
type node struct {
	worker.Estimator
	reader *rpc.Reader
	// client is the client in whose name nodes are asked; nil: the service's own name. The newest
	// and the final block are read in the service's name, once for all lanes.
	client *rpc.ClientReader
	age    time.Duration // most age of the newest and the final block
}

// nodeOf builds a lane's access to a chain.
func nodeOf(s settings.Settings, id chain.ID, pool *rpc.Pool) node {
	reader, policy := pool.Reader(), s.On(id).Fee
	return node{reader: reader, age: s.On(id).Lane.Poll, Estimator: worker.Estimator{
		Chain: id, Type: written(s.Formats.Of(id)).Type, Policy: policy, Trials: reader,
		Market: reader.Market(policy.History, policy.Percentiles()...),
	}}
}

// Next is the account's next nonce at a block that a quorum of endpoints knows.
func (n node) Next(ctx context.Context, s chain.Sequence, final bool) (lane.Witness, error) {
	newest, nonce := n.reader.Latest, n.reader.AgreedNonce
	if final {
		newest = n.reader.LatestFinal
	}
	if n.client != nil {
		nonce = n.client.AgreedNonce
	}
	at, err := newest(ctx, n.age)
	if err != nil {
		return lane.Witness{}, err
	}
	agreed, err := nonce(ctx, at, s)
	return lane.Witness{
		Nonce: agreed.Nonce, Block: agreed.Block, Final: final,
		Endpoints: agreed.Endpoints, Needed: agreed.Needed, Asked: agreed.Asked,
	}, err
}

// Final is the newest final block that a quorum of endpoints knows.
func (n node) Final(ctx context.Context) (chain.Block, error) {
	return n.reader.LatestFinal(ctx, n.age)
}

// At is the block at a height on which a quorum of endpoints agrees.
func (n node) At(ctx context.Context, number uint64) (chain.Block, error) {
	if n.client != nil {
		b, _, err := n.client.BlockAt(ctx, number)
		if err == nil {
			err = n.client.Shown(ctx, b)
		}
		return b, err
	}
	b, _, err := n.reader.BlockAt(ctx, number)
	if err != nil {
		return chain.Block{}, err
	}
	return b, n.reader.Shown(ctx, b)
}
