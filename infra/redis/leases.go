package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Leases grants leases that lapse by the server's clock, to the millisecond. Each is a key,
// watchtower:lease:{name}, that holds its holder and expires with it.
//
// Leases are as reliable as the server's memory. A server that is emptied, restarts without its
// data, or is replaced by a lagging replica grants a lease to a second holder, while the first
// holder relies on it until its next renewal. Two holders at once are possible. That is
// harmless only because nothing relies on a single holder: the lane's fence, in the log,
// refuses the former holder's writes.
type Leases struct {
	client  *goredis.Client
	timeout time.Duration // for one call
}

// OpenLeases prepares the connection to a server, by a URL as in [Check]. It is made when
// needed, so an unreachable Redis is no error.
func OpenLeases(url string) (*Leases, error) { return openLeases(url, callTimeout) }

func openLeases(url string, call time.Duration) (*Leases, error) {
	client, err := connect(url, call)
	if err != nil {
		return nil, err
	}
	// A call may also have to connect, and to send the script.
	return &Leases{client, dialTimeout + 2*call}, nil
}

// Close closes the connections; held leases lapse.
func (l *Leases) Close() error { return l.client.Close() }

// leaseSlack is how much longer than ours another holder's term may be. A lease that runs even
// longer was given before the server's clock was set back, and a lease without an end is not
// ours: both count as lapsed.
const leaseSlack = time.Minute

// Redis runs a script atomically (redis.io/docs/latest/develop/programmability/eval-intro).
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

// Acquire takes or renews a lease for ttl, rounded up to a millisecond. held is false while
// another holder's runs. holder is a random value per run of a process: callers with the same
// value share the lease. After eventlog.ErrUnknown the lease may be held; a second call shows it.
func (l *Leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error) {
	answer, err := l.run(ctx, acquireLease, name, holder, millis(ttl), millis(ttl+leaseSlack))
	if err != nil {
		return false, fmt.Errorf("lease %s: %w", name, err)
	}
	return answer == 1, nil
}

// Release ends a lease at once. Not holding it is no error.
func (l *Leases) Release(ctx context.Context, name, holder string) error {
	if _, err := l.run(ctx, releaseLease, name, holder); err != nil {
		return fmt.Errorf("release lease %s: %w", name, err)
	}
	return nil
}

// Lease returns a lease's holder, and its remaining term; an empty holder if nobody has it.
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

// run runs a script once: without an answer it is unknown whether it ran, or still will.
func (l *Leases) run(ctx context.Context, script *goredis.Script, name string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	answer, err := script.Run(ctx, l.client, []string{leaseKey(name)}, args...).Int64()
	var reply goredis.Error
	if err != nil && !errors.As(err, &reply) {
		err = fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
	}
	return answer, err
}
