package simulation

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const gwei = 1_000_000_000

// load is the clients with transactions to deliver: senders, their lanes, and the transactions
// signed so far.
type load struct {
	world   *world
	rand    *rand.Rand
	senders []*sender
	stalled bool // the chain produces no blocks

	next time.Duration // time of the next request
	at   time.Time     // in a twin world, the scheduled time of the current request

	fresh  uint64 // number of nonce keys used
	keys   int    // number of Idempotency-Keys used
	recent []*signed
	groups []*signed // one member of each group that may be canceled
	signed int
}

// sender is an account and its reused lanes.
type sender struct {
	key     wallet.Secp256k1
	address chain.Address
	lanes   []*ownLane
}

// ownLane is a sender's nonce sequence, up to the last signed nonce.
type ownLane struct {
	sender *sender
	key    chain.NonceKey
	next   uint64
	stuck  time.Duration // time since which the chain has waited for a nonce that was not sent
	wants  uint64
}

// signed is a signed transaction.
type signed struct {
	sender *sender
	raw    []byte
	hash   chain.Hash
	key    chain.NonceKey
	nonce  uint64
	window chain.Window
	taken  bool      // the service acknowledged it
	at     time.Time // time of the first acknowledgement
	group  []*signed // its group's members, if the group may be canceled
}

const (
	sendersMost = 12
	lanesMost   = 4
	recentMost  = 64
)

func newLoad(w *world) *load {
	l := &load{world: w, rand: rand.New(rand.NewPCG(w.plan.Seed, 0x10ad))}
	for i := range sendersMost {
		secret := chain.Keccak([]byte("simulated sender"), binary.BigEndian.AppendUint64(nil, w.plan.Seed), []byte{byte(i)})
		key, err := wallet.NewSecp256k1(secret)
		if err != nil {
			panic(err) // a hash exceeds the curve's order once in 2^128
		}
		s := &sender{key: key, address: key.Address()}
		for i := range lanesMost {
			s.lanes = append(s.lanes, &ownLane{sender: s, key: chain.NonceKey{31: byte(i)}})
		}
		l.senders = append(l.senders, s)
	}
	return l
}

func (l *load) sender() *sender { return l.senders[l.rand.IntN(len(l.senders))] }

// unix is the world's time plus d.
func (l *load) unix(d time.Duration) uint64 {
	now := time.Now()
	if l.world.plan.Twins && !l.at.IsZero() {
		now = l.at // to the nanosecond the same in both runs
	}
	return uint64(now.Add(d).Unix()) //nolint:gosec // after 1970
}

func (l *load) chance(p float64) bool { return p > 0 && l.rand.Float64() < p }

func (l *load) between(low, high time.Duration) time.Duration {
	return low + time.Duration(l.rand.Int64N(int64(high-low)))
}

// sign signs a payment.
func (l *load) sign(s *sender, key chain.NonceKey, nonce uint64, w chain.Window, tip uint64) *signed {
	l.signed++
	to := chain.Address{0: 0x77, 19: 1}
	t := &signed{sender: s, key: key, nonce: nonce, window: w}
	if ethereum := key.IsZero() && w == (chain.Window{}) && l.rand.IntN(2) == 0; ethereum {
		t.raw = wallet.Ethereum{
			Chain: chainID, MaxFee: 40 * gwei, MaxPriorityFee: tip * gwei, Gas: 21_000, Nonce: nonce, Call: chain.Call{To: &to},
		}.Sign(s.key)
	} else {
		t.raw = wallet.Tempo{
			Chain: chainID, MaxFee: 40 * gwei, MaxPriorityFee: tip * gwei, Gas: 100_000, NonceKey: key, Nonce: nonce, Window: w,
			Calls: []chain.Call{{To: &to}},
		}.Sign(s.key)
	}
	t.hash = chain.Keccak(t.raw)
	l.world.life.signed(t)
	if l.recent = append(l.recent, t); len(l.recent) > recentMost {
		l.recent = l.recent[1:]
	}
	return t
}

// freshKey is an unused nonce key.
func (l *load) freshKey() chain.NonceKey {
	l.fresh++
	key := chain.NonceKey{0: 1}
	binary.BigEndian.PutUint64(key[24:], l.fresh)
	return key
}

// groupKey is an unused key in the NKG1 format.
func (l *load) groupKey() chain.NonceKey {
	l.fresh++
	key := chain.NonceKey{0: 'N', 1: 'K', 2: 'G', 3: '1', 4: 1}
	binary.BigEndian.PutUint64(key[24:], l.fresh)
	return key
}

// window draws an open validity window, or none.
func (l *load) window() chain.Window {
	if l.rand.IntN(2) == 0 {
		return chain.Window{}
	}
	return chain.Window{Before: l.unix(l.between(time.Minute, 15*time.Minute))}
}

// batch signs the transactions of one request.
func (l *load) batch() []*signed {
	s := l.sender()
	switch n := l.rand.IntN(100); {
	case n < 45:
		return []*signed{l.sign(s, l.freshKey(), 0, l.window(), 1)}
	case n < 65:
		return []*signed{l.follow(s.lanes[l.rand.IntN(lanesMost)])}
	case n < 72:
		return l.gap(s.lanes[l.rand.IntN(lanesMost)])
	case n < 80:
		after := l.unix(l.between(5*time.Second, 15*time.Minute))
		return []*signed{l.sign(s, l.freshKey(), 0, chain.Window{After: after, Before: after + 30 + l.rand.Uint64N(600)}, 1)}
	case n < 84:
		return []*signed{l.sign(s, chain.ExpiringKey, 0, chain.Window{Before: l.unix(l.between(20*time.Second, 90*time.Second))}, 1)}
	case n < 89:
		key, w := l.freshKey(), l.window()
		return []*signed{l.sign(s, key, 0, w, 1), l.sign(s, key, 0, w, 2)}
	case n < 96:
		return l.group(s)
	}
	return []*signed{l.sign(s, l.freshKey(), 0, chain.Window{Before: l.unix(l.between(5*time.Second, 40*time.Second))}, 1)}
}

// follow signs a lane's next nonce.
func (l *load) follow(at *ownLane) *signed {
	var w chain.Window
	if l.rand.IntN(10) == 0 {
		w = chain.Window{Before: l.unix(l.between(time.Minute, 10*time.Minute))}
	}
	t := l.sign(at.sender, at.key, at.next, w, 1)
	at.next++
	return t
}

// gap signs a lane's next two nonces; the first is submitted much later.
func (l *load) gap(at *ownLane) []*signed {
	first, second := l.follow(at), l.follow(at)
	l.world.agenda.after(l.between(5*time.Second, 2*time.Minute), "gap filled", func() { l.world.submit([]*signed{first}) })
	return []*signed{second}
}

// group signs the members of a new group, some of them for later.
func (l *load) group(s *sender) []*signed {
	key := l.groupKey()
	var w chain.Window
	if l.rand.IntN(3) > 0 {
		w.After = l.unix(l.between(10*time.Second, 5*time.Minute))
	}
	w.Before = l.unix(l.between(6*time.Minute, 15*time.Minute))
	var members []*signed
	for nonce := range uint64(2 + l.rand.IntN(3)) { //nolint:gosec // small
		members = append(members, l.sign(s, key, nonce, w, 1))
	}
	members[0].group = members
	if cancel := l.world.plan.Client.Cancel; cancel > 0 && l.rand.IntN(4) == 0 {
		// Its owner cancels, possibly before they have joined as members.
		l.world.agenda.after(l.between(0, 3*time.Second), "regret", func() { l.world.cancelGroup(members[0]) })
		return members
	}
	l.groups = append(l.groups, members[0])
	return members
}

// rival signs another transaction with the same nonce.
func (l *load) rival(t *signed) []byte {
	return wallet.Tempo{
		Chain: chainID, MaxFee: 90 * gwei, MaxPriorityFee: 3 * gwei, Gas: 100_000, NonceKey: t.key, Nonce: t.nonce,
		Calls: []chain.Call{{To: &t.sender.address}},
	}.Sign(t.sender.key)
}

// rivals are transactions with the same nonces as transactions in the newest blocks.
func (l *load) rivals(depth int) (raws [][]byte) {
	head := l.world.chain.Head().Number
	for _, t := range l.recent {
		at, mined := l.world.chain.Receipt(t.hash)
		independent := t.nonce == 0 && !t.key.IsZero() && !t.key.IsExpiring()
		if mined && independent && at.Block.Number+uint64(depth) > head && len(raws) < 3 { //nolint:gosec // small
			raws = append(raws, l.rival(t))
		}
	}
	return raws
}

// fill submits missing transactions that lanes wait for, as attentive owners do.
func (l *load) fill() (open int) {
	now := l.world.agenda.now()
	if l.world.plan.Twins {
		return 0 // its lanes have no gaps
	}
	for _, s := range l.senders {
		for _, at := range s.lanes {
			wants := l.world.chain.Nonce(chain.Sequence{Chain: chainID, Sender: s.address, Key: at.key})
			if wants >= at.next {
				continue
			}
			open++
			if wants != at.wants || at.stuck == 0 {
				at.wants, at.stuck = wants, now
			}
			const patience = time.Minute
			if now-at.stuck > patience {
				at.stuck = now
				l.world.submit([]*signed{l.sign(s, at.key, wants, chain.Window{}, 5)})
			}
		}
	}
	return open
}
