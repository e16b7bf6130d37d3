package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

const (
	demoPatience = 60 * time.Second // for all three together
	lookInterval = 100 * time.Millisecond
)

// demo signs three transactions, submits them to the service like a client, and reports their
// progress.
type demo struct {
	service string // URL of the API
	node    string // URL of the chain
	out     *paper
	codec   eventlog.Codec[tx.Event]
	random  io.Reader
	// after is the time until the second transaction's validAfter; gap is the time until the
	// third one's predecessor is submitted.
	after, gap time.Duration
	patience   time.Duration

	last chain.Hash // the third transaction's hash, once signed
}

func newDemo(service, node string, out *paper) *demo {
	return &demo{
		service: service, node: node, out: out, codec: tx.Codec(), random: rand.Reader,
		after: 5 * time.Second, gap: 3 * time.Second, patience: demoPatience,
	}
}

// journey is one transaction as its followers see it.
type journey struct {
	label string
	raw   []byte
	hash  chain.Hash
	seen  int    // events reported
	note  string // the last note reported
	ended bool
	good  bool // executed, and not reverted
}

// run returns nil only if all three were executed.
func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	journeys, predecessor, err := d.sign(time.Now())
	if err != nil {
		return err
	}
	d.last = journeys[len(journeys)-1].hash
	start := time.Now()
	if err := d.post(ctx, journeys); err != nil {
		return err
	}
	err = d.follow(ctx, start, journeys, predecessor)
	delivered := 0
	for _, j := range journeys {
		if j.good {
			delivered++
		}
	}
	result := fmt.Sprintf("%d/%d delivered", delivered, len(journeys))
	if delivered == len(journeys) {
		d.out.line("  %s in %s", d.out.in(green, result), short(time.Since(start)))
		return nil
	}
	return errors.Join(errors.New(result), err)
}

// sign signs the three transactions, and the predecessor that the third must wait for. Each has
// its own unused nonce key.
func (d *demo) sign(now time.Time) (journeys []*journey, predecessor []byte, err error) {
	var keys [3]chain.NonceKey
	for i := range keys {
		if keys[i], err = newNonceKey(d.random); err != nil {
			return nil, nil, err
		}
	}
	signed := func(label string, k chain.NonceKey, nonce, after uint64) *journey {
		p := payment(k)
		p.Nonce, p.Window.After = nonce, after
		raw := p.Sign(wallet.Dev(0))
		return &journey{label: label, raw: raw, hash: chain.Keccak(raw)}
	}
	opens := uint64(now.Add(d.after).Unix())
	return []*journey{
		signed("now", keys[0], 0, 0),
		signed(fmt.Sprintf("valid in %.0f s", d.after.Seconds()), keys[1], 0, opens),
		signed("nonce 1 before nonce 0", keys[2], 1, 0),
	}, signed("", keys[2], 0, 0).raw, nil
}

// newNonceKey returns an unused nonce key.
func newNonceKey(random io.Reader) (k chain.NonceKey, err error) {
	_, err = io.ReadFull(random, k[1:]) // the first byte stays 0: other values can mean something to Tempo
	return k, err
}

// payment moves one unit from the first of the public keys to the second.
func payment(k chain.NonceKey) wallet.Tempo {
	return wallet.Tempo{
		Chain: chainID, NonceKey: k, Gas: 2_000_000, MaxFee: 40e9, MaxPriorityFee: 1e9, // a nonce key's first use takes most of the gas
		Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, wallet.Dev(1).Address(), 1)},
	}
}

const labelWidth = len("nonce 1 before nonce 0")

func (d *demo) post(ctx context.Context, journeys []*journey) error {
	var raws [][]byte
	for _, j := range journeys {
		raws = append(raws, j.raw)
	}
	results, err := rig.Submit(ctx, d.service, chainID, raws...)
	if err != nil {
		return err
	}
	for i, r := range results {
		switch {
		case !r.OK && r.Problem != nil:
			return fmt.Errorf("%s: refused: %s: %s", journeys[i].label, r.Problem.Code, r.Problem.Detail)
		case !r.OK || r.TxHash != journeys[i].hash:
			return fmt.Errorf("%s: the service answered %+v", journeys[i].label, r)
		}
	}
	return nil
}

// follow reports the journeys until all have ended. Meanwhile it submits the predecessor
// directly to the node, as its owner might.
func (d *demo) follow(ctx context.Context, start time.Time, journeys []*journey, predecessor []byte) error {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	gap := time.NewTimer(d.gap)
	defer gap.Stop()
	for {
		open := 0
		for _, j := range journeys {
			if err := d.look(ctx, start, j); err != nil {
				return err
			}
			if !j.ended {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		select {
		case <-look.C:
		case <-gap.C:
			if err := rig.Call(ctx, d.node, nil, "eth_sendRawTransaction", "0x"+hex.EncodeToString(predecessor)); err != nil {
				return fmt.Errorf("nonce 0: %w", err)
			}
			d.out.step(d.last, journeys[len(journeys)-1].label, "(its owner sends nonce 0 to the node)", "", time.Since(start))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look reports the news of one journey.
func (d *demo) look(ctx context.Context, start time.Time, j *journey) error {
	if j.ended {
		return nil
	}
	events, err := rig.Events(ctx, d.service, j.hash)
	if err != nil {
		return err
	}
	for _, recorded := range events[min(j.seen, len(events)):] {
		j.seen++
		e, err := d.codec.Decode(recorded.Name, recorded.Data)
		if err != nil {
			return err
		}
		what, colour := j.take(e)
		d.out.step(j.hash, j.label, what, colour, recorded.At.Sub(start))
	}
	if j.ended || j.seen < 2 { // only accepted: no attempt has left a note yet
		return nil
	}
	t, err := rig.Get(ctx, d.service, j.hash)
	if err != nil {
		return err
	}
	if t.Note != j.note && strings.HasPrefix(t.Note, "waiting") {
		j.note = t.Note
		d.out.step(j.hash, j.label, t.Note, "", time.Since(start))
	}
	return nil
}

// take applies an event to a journey and describes it.
func (j *journey) take(e tx.Event) (what, colour string) {
	switch e := e.(type) {
	case tx.Accepted:
		if wait := time.Unix(int64(e.EligibleAt), 0).Sub(e.At); wait > 0 {
			return fmt.Sprintf("accepted, eligible in %s", short(wait)), ""
		}
		return "accepted", ""
	case tx.Broadcast:
		return fmt.Sprintf("broadcast, attempt %d", e.Attempt), ""
	case tx.Rejected:
		j.ended = e.Permanent
		if e.Permanent {
			return "refused permanently: " + e.Reason, red
		}
		return "refused: " + e.Reason, ""
	case tx.Mined:
		j.ended, j.good = true, e.Receipt.Status == 1
		if !j.good {
			return fmt.Sprintf("reverted in block %d", e.Receipt.Block.Number), red
		}
		return fmt.Sprintf("executed in block %d", e.Receipt.Block.Number), green
	case tx.StaleByNonce:
		j.ended = true
		return "another transaction used its nonce", red
	case tx.Expired:
		j.ended = true
		return "expired", red
	default:
		return fmt.Sprintf("%T", e), ""
	}
}
