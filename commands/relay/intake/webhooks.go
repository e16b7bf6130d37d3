package intake

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// WebhookQuota bounds how many webhooks each client uses. It counts as [Quota] does.
type WebhookQuota struct {
	Limit int
	// InUse lists a client's endpoints that are in use, up to most.
	InUse func(ctx context.Context, client string, most int) ([]notice.EndpointID, error)
	Now   func() time.Time
	// Used, when set, is called with the largest use among recent clients.
	Used func(used int)

	mu      sync.Mutex
	clients map[string]*using
}

// using is one client's use.
type using struct {
	turn           commands.Turn // serializes the reads of InUse
	at             time.Time     // time of the read; zero: never read
	used           map[notice.EndpointID]bool
	recent, before map[notice.EndpointID]bool // requested here since that read, and between the last two reads
}

func (u *using) all() map[notice.EndpointID]bool {
	all := maps.Clone(u.used)
	maps.Copy(all, u.before)
	maps.Copy(all, u.recent)
	return all
}

// Take refuses ([access.ErrQuotaExceeded]) a request whose new webhooks exceed the client's
// quota. Webhooks already in use are never refused.
func (q *WebhookQuota) Take(ctx context.Context, r intent.Request) error { return q.take(ctx, r, true) }

// Ask refuses the same requests as Take, and takes nothing.
func (q *WebhookQuota) Ask(ctx context.Context, r intent.Request) error { return q.take(ctx, r, false) }

func (q *WebhookQuota) take(ctx context.Context, r intent.Request, keep bool) error {
	if len(r.Webhooks) == 0 {
		return nil
	}
	u := q.of(r.Client)
	if err := q.look(ctx, r.Client, u); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	all := u.all()
	used, fresh := len(all), map[notice.EndpointID]bool{}
	for _, w := range r.Webhooks {
		if id := notice.EndpointOf(r.Client, w.URL); !all[id] {
			fresh[id] = true
		}
	}
	if len(fresh) > 0 && used+len(fresh) > q.Limit {
		return access.ErrQuotaExceeded.Because("the client uses %s, and the intent has %d more; quota.webhooks allows %d", commands.Counted(used, "webhook"), len(fresh), q.Limit)
	}
	if keep {
		maps.Copy(u.recent, fresh)
	}
	if q.Used != nil {
		q.Used(q.most())
	}
	return nil
}

func (q *WebhookQuota) most() (most int) {
	for _, u := range q.clients {
		if q.Now().Sub(u.at) < time.Minute {
			most = max(most, len(u.all()))
		}
	}
	return most
}

func (q *WebhookQuota) of(client string) *using {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.clients == nil {
		q.clients = map[string]*using{}
	}
	u := q.clients[client]
	if u == nil {
		if len(q.clients) >= quotaClients {
			maps.DeleteFunc(q.clients, func(_ string, u *using) bool { return q.Now().Sub(u.at) > 2*quotaFresh })
		}
		u = &using{turn: commands.NewTurn(), recent: map[notice.EndpointID]bool{}}
		q.clients[client] = u
	}
	return u
}

// look refreshes a list that is older than quotaFresh.
func (q *WebhookQuota) look(ctx context.Context, client string, u *using) error {
	end, err := u.turn.Take(ctx)
	if err != nil {
		return fmt.Errorf("count a client's webhooks: %w", err)
	}
	defer end()
	q.mu.Lock()
	age, recent := q.Now().Sub(u.at), maps.Clone(u.recent)
	fresh := !u.at.IsZero() && age >= 0 && age < quotaFresh
	q.mu.Unlock()
	if fresh {
		return nil
	}
	ids, err := q.InUse(ctx, client, q.Limit+1)
	if err != nil {
		return fmt.Errorf("count a client's webhooks: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(u.recent, func(id notice.EndpointID, _ bool) bool { return recent[id] })
	if age > 2*quotaFresh { // they were requested within a second of the read before
		recent = nil
	}
	u.at, u.used, u.before = q.Now(), map[notice.EndpointID]bool{}, recent
	for _, id := range ids {
		u.used[id] = true
	}
	return nil
}
