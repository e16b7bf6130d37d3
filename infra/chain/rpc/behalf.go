package rpc

import (
	"context"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const (
	// clientReadersMax is how many clients a reader remembers; with more, all are forgotten.
	clientReadersMax = 1024
	// clientNoncesMax is how many nonces are remembered for a client; with more, all are
	// forgotten.
	clientNoncesMax = 256
)

// ClientReader reads the chain for a client's request. Its calls are treated like calls of
// [Pool.Ask]: they use the client's share of each endpoint's budget, take turns with other
// clients' calls, and a node's request for a pause (429) pauses this client alone. They neither
// count for an endpoint's health nor move the service's own reads to another endpoint.
//
// Requests of the same client at the same time share one reading of the head, and one of each
// nonce. A nonce at a block is read once. Clients share nothing with each other or with the
// service's own reads: otherwise one client's pause or budget would decide another's answer.
type ClientReader struct {
	reader *Reader
	client string
	use    purpose // onBehalf, repeat or trying
	heads  chorus[chain.Block]

	mu     sync.Mutex
	block  chain.Hash // the block of nonces
	nonces map[chain.Sequence]*clientNonce
}

// clientNonce is the next nonce of one sequence at one block. The chorus guards the other fields.
type clientNonce struct {
	chorus[uint64]
	known bool
	nonce uint64
}

// OnBehalf returns the reader of a client; client is empty if all clients are one.
func (r *Reader) OnBehalf(client string) *ClientReader { return r.readerFor(client, onBehalf) }

// Repeating returns the reader for repeated attempts at a client's transactions, and for the
// repeated questions about their access keys. Its calls have the client's share of each endpoint's
// budget for repeats, which goes before calls that clients choose, and a node's request for a pause
// (429) pauses this client's repeats alone.
func (r *Reader) Repeating(client string) *ClientReader { return r.readerFor(client, repeat) }

func (r *Reader) readerFor(client string, use purpose) *ClientReader {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := pausedClient{client, use}
	if known := r.clients[key]; known != nil {
		return known
	}
	if r.clients == nil || len(r.clients) >= clientReadersMax {
		r.clients = map[pausedClient]*ClientReader{}
	}
	r.clients[key] = &ClientReader{reader: r, client: client, use: use}
	return r.clients[key]
}

// Head is [Reader.Head].
func (c *ClientReader) Head(ctx context.Context) (chain.Block, error) {
	return c.heads.do(ctx, func(ctx context.Context) (chain.Block, error) { return placed(ctx, c, c.reader.head) })
}

// Nonces is [Reader.Nonces].
func (c *ClientReader) Nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	nonces := make([]uint64, len(sequences))
	for i, s := range sequences {
		var err error
		if nonces[i], err = c.nonce(ctx, at, s); err != nil {
			return nil, err
		}
	}
	return nonces, nil
}

func (c *ClientReader) nonce(ctx context.Context, at chain.Block, s chain.Sequence) (uint64, error) {
	n := c.nonceOf(at.Hash, s)
	return n.do(ctx, func(ctx context.Context) (uint64, error) {
		if n.known {
			return n.nonce, nil
		}
		nonces, err := placed(ctx, c, func(ctx context.Context) ([]uint64, error) {
			return c.reader.Nonces(ctx, at, []chain.Sequence{s})
		})
		if err != nil {
			return 0, err
		}
		n.known, n.nonce = nonces[0] > 0, nonces[0] // 0 is one node's word, as no other confirms it
		return nonces[0], nil
	})
}

// nonceOf returns the entry of a sequence at a block. The nonces at another block are forgotten.
func (c *ClientReader) nonceOf(block chain.Hash, s chain.Sequence) *clientNonce {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.block != block {
		c.block, c.nonces = block, nil
	}
	if known := c.nonces[s]; known != nil {
		return known
	}
	if c.nonces == nil || len(c.nonces) >= clientNoncesMax {
		c.nonces = map[chain.Sequence]*clientNonce{}
	}
	c.nonces[s] = &clientNonce{}
	return c.nonces[s]
}

// FindReceipt is [Reader.FindReceipt].
func (c *ClientReader) FindReceipt(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error) {
	return placed(ctx, c, func(ctx context.Context) (*chain.Receipt, error) { return c.reader.FindReceipt(ctx, hash, at) })
}

// Receipts is [Reader.Receipts].
func (c *ClientReader) Receipts(ctx context.Context, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	return placed(ctx, c, func(ctx context.Context) (map[chain.Hash]chain.Receipt, error) {
		return c.reader.Receipts(ctx, block, hashes)
	})
}

// Grants is [Reader.Grants].
func (c *ClientReader) Grants(ctx context.Context, at chain.Block, keys []chain.AccessKey) ([]chain.Grant, error) {
	return placed(ctx, c, func(ctx context.Context) ([]chain.Grant, error) { return c.reader.Grants(ctx, at, keys) })
}

// BlockAt is [Reader.BlockAt].
func (c *ClientReader) BlockAt(ctx context.Context, number uint64) (b chain.Block, hashes []chain.Hash, err error) {
	b, err = placed(ctx, c, func(ctx context.Context) (block chain.Block, err error) {
		block, hashes, err = c.reader.BlockAt(ctx, number)
		return block, err
	})
	return b, hashes, err
}

// Shown is [Reader.Shown].
func (c *ClientReader) Shown(ctx context.Context, block chain.Block) error {
	_, err := placed(ctx, c, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.reader.Shown(ctx, block) })
	return err
}

// placed calls read for a client, in one of the places of clients' calls. Repeats and trials are bounded
// by the attempts and estimates in progress already.
func placed[T any](ctx context.Context, c *ClientReader, read func(context.Context) (T, error)) (T, error) {
	ctx = context.WithValue(ofClient(ctx, c.client), behalfKey{}, c.use)
	if c.use != onBehalf {
		return read(ctx)
	}
	leave, err := c.reader.pool.place(ctx, c.client)
	if err != nil {
		var none T
		return none, err
	}
	defer leave()
	return read(ctx)
}

// behalfKey is the context key of the purpose of a trial's and a [ClientReader]'s reads.
type behalfKey struct{}

// isOwn reports whether a read is the service's own, and neither a [ClientReader]'s nor part of a
// trial. For broadcasts it is true.
func isOwn(ctx context.Context) bool { return ctx.Value(behalfKey{}) == nil }

// useOf is the purpose of a read.
func useOf(ctx context.Context) purpose {
	if use, ok := ctx.Value(behalfKey{}).(purpose); ok {
		return use
	}
	return read
}
