package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Leases hands out rights that lapse by the server's clock, to the millisecond. Each is a
// key, watchtower:lease:{name}, that holds its holder and expires with it.
//
// They are as good as the server's memory. One that is emptied, restarted without what it
// held, or replaced by a replica that had not heard yet, gives a lease to somebody else
// while its holder still believes in it, until that one asks again. Two holders at once are
// so possible, and harmless only because nothing rests on there being one: what a former
// holder still does to a lane is refused by the lane's fence, in the log.
type Leases struct {
	client  *goredis.Client
	timeout time.Duration // of a call
}

// OpenLeases prepares the connection to a server, by a URL as [Check] has it. It is made
// when it is needed, so a Redis that is down is no error.
func OpenLeases(url string) (*Leases, error) { return openLeases(url, callTimeout) }

func openLeases(url string, call time.Duration) (*Leases, error) {
	client, err := connect(url, call)
	if err != nil {
		return nil, err
	}
	// A connection may have to be made, and a script sent that the server does not know.
	return &Leases{client, dialTimeout + 2*call}, nil
}

// Close ends the connections; leases that are held lapse.
func (l *Leases) Close() error { return l.client.Close() }

// leaseSlack is how much longer than ours another's term may be. A lease that runs for
// longer yet was given before the server's clock was set back, and one without an end is
// not ours: nobody may wait for them.
const leaseSlack = time.Minute

// Redis runs a script as one step (redis.io/docs/latest/develop/programmability/eval-intro).
var (
	acquireLease = goredis.NewScript(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
local left = redis.call('PTTL', KEYS[1])
if redis.call('GET', KEYS[1]) ~= ARGV[1] and left >= 0 and left <= tonumber(ARGV[3]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)

	releaseLease = goredis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0`)
)

func leaseKey(name string) string { return "watchtower:lease:" + name }

// Acquire takes or renews a lease for ttl, which is rounded up to a millisecond; held is
// false while another holder's runs. The holder is a random value of one run of one
// process: whoever gives the same has the same lease. After event.ErrUnknown the lease may
// be held; asking again tells.
func (l *Leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error) {
	answer, err := l.run(ctx, acquireLease, name, holder, millis(ttl), millis(ttl+leaseSlack))
	if err != nil {
		return false, fmt.Errorf("lease %s: %w", name, err)
	}
	return answer == 1, nil
}

// Release gives a lease up at once; not holding it is no error.
func (l *Leases) Release(ctx context.Context, name, holder string) error {
	if _, err := l.run(ctx, releaseLease, name, holder); err != nil {
		return fmt.Errorf("release lease %s: %w", name, err)
	}
	return nil
}

// Lease tells who has a lease, and how long it runs still; nobody has it when the holder
// is empty.
func (l *Leases) Lease(ctx context.Context, name string) (holder string, left time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	holder, err = l.client.Get(ctx, leaseKey(name)).Result()
	if errors.Is(err, goredis.Nil) {
		return "", 0, nil
	}
	if err == nil {
		left, err = l.client.PTTL(ctx, leaseKey(name)).Result()
	}
	if err != nil {
		return "", 0, fmt.Errorf("lease %s: %w", name, err)
	}
	return holder, max(left, 0), nil
}

func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// run runs a script once: whether it ran, or still will, is not known without the answer.
func (l *Leases) run(ctx context.Context, script *goredis.Script, name string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	answer, err := script.Run(ctx, l.client, []string{leaseKey(name)}, args...).Int64()
	var reply goredis.Error
	if err != nil && !errors.As(err, &reply) {
		err = fmt.Errorf("%w: %w", event.ErrUnknown, err)
	}
	return answer, err
}
