package app

import (
	"context"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	delivery "github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// served is one chain that intents are carried out on.
type served struct {
	*relayer.Relayer
	relay   *relay
	signers []chain.Address // who may sign here
}

func (r *relay) serve(id chain.ID, pool *rpc.Pool) *served {
	format, on := r.settings.Formats.Of(id), r.settings.On(id)
	n := nodeOf(r.settings, id, pool)
	c := &served{relay: r, Relayer: &relayer.Relayer{
		Chain: id, Lanes: r.lanes, Intents: r.intents, Transactions: r.in.Transactions, Vault: r.in.Vault,
		Queue: r.queue, Node: n, Blocks: r.in.Ports.Storage.Board, Fees: pricing{n.Estimator, id, on.Fee.Most().MaxFee, r.metrics}, Format: written(format),
		Delivery: r.in.Submit.Unbounded(), News: &relayer.News{Chain: id, Store: r.in.Store, Log: r.log},
		Guard: guarding{r.guard, r.metrics}, Told: r.turned, Settings: on.Lane, Holder: r.in.Settings.Holder,
		Now: r.in.Ports.Now, Random: r.in.Ports.Random, Crash: r.in.Ports.Crash, Log: r.log, Purses: &relayer.Purses{},
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

// lane is one of a signer whose key is here.
func (c *served) lane(signer chain.Address, key chain.NonceKey) *relayer.Lane {
	l := &relayer.Lane{
		Relayer: c.Relayer, ID: chain.Sequence{Chain: c.Chain, Sender: signer, Key: key},
		Signer: c.relay.signer(signer), Pools: c.relay.settings.Pools.Of(signer), OnlyAsked: key != protocolKey,
	}
	if payer := c.relay.settings.Signers.FeePayer; payer != nil && c.Format.PayerPayload != nil {
		if held, err := c.relay.ring.Signer(*payer); err == nil {
			l.Payer = counted{held, c.relay.metrics}
		}
	}
	return l
}

// signer is that of an address of the ring.
func (r *relay) signer(a chain.Address) relayer.Signer {
	signer, err := r.ring.Signer(a)
	if err != nil {
		panic(err) // its address is the ring's
	}
	return counted{signer, r.metrics}
}

// tempoFirst is how much more gas the first transaction of an account takes on Tempo, or
// under a nonce key: 250,000, for new state, and what storing that costs. Source: TIP-1000.
const tempoFirst = 300_000

// written is how transactions of a format are written, and read as delivery reads them.
func written(f settings.Format) relayer.Format {
	if f == settings.Tempo {
		return relayer.Format{
			Type: tempo.Type, First: tempoFirst, Payload: tempo.Payload, PayerPayload: tempo.PayerPayload, Encode: tempo.Encode, Decode: delivery.Decode,
		}
	}
	kind := uint8(ethereum.DynamicFee)
	if f == settings.Legacy {
		kind = ethereum.Legacy
	}
	return relayer.Format{
		Type: kind, Payload: ethereum.Payload, Decode: delivery.Decode,
		Encode: func(tx chain.Unsigned, signature, _ []byte) ([]byte, error) { return ethereum.Encode(tx, signature) },
	}
}

// node is a chain as its endpoints tell of it.
type node struct {
	relayer.Estimator
	reader *rpc.Reader
}

// nodeOf is a chain as its lanes ask it.
func nodeOf(s settings.Settings, id chain.ID, pool *rpc.Pool) node {
	reader, policy := pool.Reader(), s.On(id).Fee
	return node{reader: reader, Estimator: relayer.Estimator{
		Chain: id, Type: written(s.Formats.Of(id)).Type, Policy: policy, Trials: reader,
		Market: reader.Market(policy.History, policy.Percentiles()...),
	}}
}

// Next is what nonce the chain wants next, as of a block that as many endpoints as have
// to agree know.
func (n node) Next(ctx context.Context, s chain.Sequence, final bool) (lane.Witness, error) {
	at, err := n.reader.Newest(ctx)
	if err == nil && final {
		if at, err = n.reader.Final(ctx, at); err == nil {
			err = n.reader.ShownFinal(ctx, at)
		}
	}
	if err != nil {
		return lane.Witness{}, err
	}
	agreed, err := n.reader.AgreedNonce(ctx, at, s)
	return lane.Witness{
		Nonce: agreed.Nonce, Block: agreed.Block, Final: final,
		Endpoints: agreed.Endpoints, Needed: agreed.Needed, Asked: agreed.Asked,
	}, err
}

// At is the block of a height that as many endpoints as have to agree have there.
func (n node) At(ctx context.Context, number uint64) (chain.Block, error) {
	b, _, err := n.reader.BlockAt(ctx, number)
	if err != nil {
		return chain.Block{}, err
	}
	return b, n.reader.Shown(ctx, b)
}
