package simulation

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	relay "github.com/tempo-watchtower/watchtower/cmd/relayer/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/simulation/memory"
)

// HookPlan is the webhook receivers of a world, and their faults. Without receivers webhooks are
// off.
type HookPlan struct {
	// Receivers is their number. The first is always well. The others fall ill, and of four or
	// more the last disappears for good at some time.
	Receivers int
	Hooked    float64       // chance that an intent has webhooks
	Timeout   time.Duration // of an attempt
	Poll      time.Duration // of the webhook queue
	Bears     time.Duration // time after which a failing endpoint is disabled
	Slots     int           // concurrent attempts per replica
	AtOnce    int           // concurrent attempts per endpoint

	Refuse  float64 // chance per request to receivers that may fail: no connection
	Lose    float64 // the request is lost without an error
	Cut     float64 // the request arrives, its answer is lost
	Slow    float64 // the request or its answer takes seconds
	Garbage float64 // the answer is invalid
	Ill     time.Duration
	Forget  time.Duration // interval at which a receiver loses its data
	Acts    time.Duration // interval of owners' commands about their endpoints
}

// expandHooks draws the receivers of a world.
func expandHooks(seed uint64) HookPlan {
	d := dice{rand.New(rand.NewPCG(seed, 0x400c))}
	return HookPlan{
		Receivers: 2 + d.weighted(2, 2, 2), Hooked: 0.2 + 0.6*d.Float64(),
		Timeout: d.of(2*time.Second, 5*time.Second, 15*time.Second), Poll: d.of(3*time.Second, 10*time.Second),
		Bears: d.of(3*time.Minute, 20*time.Minute, 120*time.Hour), Slots: 4 + d.IntN(2)*60, AtOnce: 1 + d.IntN(4),
		Refuse: d.rate(0.1), Lose: d.rate(0.1), Cut: d.rate(0.2), Slow: d.rate(0.1), Garbage: d.rate(0.05),
		Ill: d.every(40 * time.Second), Forget: d.every(5 * time.Minute), Acts: d.every(2 * time.Minute),
	}
}

// hooked reports whether webhooks are on.
func (w *world) hooked() bool { return w.relayed() && w.plan.Relay.Hooks.Receivers > 0 }

// hooks are the receivers of webhooks and the judge of their deliveries. Only the world calls
// its methods, except lookup.
type hooks struct {
	world     *world
	rand      *rand.Rand
	caller    webhook.Caller // the product's caller, with another transport
	codec     eventlog.Codec[intent.Event]
	receivers []*receiver
	hostile   []*receiver // receivers of the hostile client
	hosts     map[string]*receiver
	endpoints map[notice.EndpointID]*receiver
	of        map[chain.IntentID][]*receiver
	last      map[chain.IntentID]uint64 // last sequence
	secrets   *secrets
	ill       int // number of illnesses so far
}

func newHooks(w *world) (*hooks, error) {
	h := &hooks{
		world: w, rand: rand.New(rand.NewPCG(w.plan.Seed, 0x400d)), codec: intent.Codec(),
		hosts: map[string]*receiver{}, endpoints: map[notice.EndpointID]*receiver{}, of: map[chain.IntentID][]*receiver{}, last: map[chain.IntentID]uint64{},
	}
	var err error
	if h.caller.Seal, err = relay.Sealer(w.master); err != nil {
		return nil, err
	}
	for i := range 2 { // the second is the older secret
		key := h.drawn("seed", i)
		seed, err := webhook.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(key))
		if err != nil {
			return nil, err
		}
		h.caller.Seeds = append(h.caller.Seeds, seed)
	}
	for i := range w.plan.Relay.Hooks.Receivers {
		r := newReceiver(h, i)
		h.receivers = append(h.receivers, r)
		h.hosts[r.host], h.endpoints[r.id] = r, r
	}
	for i := range hostileReceivers {
		r := newReceiver(h, hostileFirst+i)
		h.hostile = append(h.hostile, r)
		h.hosts[r.host] = r
	}
	h.secrets = newSecrets(h)
	return h, nil
}

// drawn is a secret derived from the world's seed.
func (h *hooks) drawn(what string, i int) []byte {
	hash := chain.Keccak([]byte("simulated webhook "+what), binary.BigEndian.AppendUint64(nil, h.world.plan.Seed), []byte{byte(i)}) //nolint:gosec // small
	return hash[:]
}

// settings are the webhook settings, as environment variables.
func (h *hooks) settings() map[string]any {
	if h == nil {
		return nil
	}
	p := h.world.plan.Relay.Hooks
	return map[string]any{
		"WEBHOOKS_SECRETS_FILE": "simulated", "WEBHOOKS_TIMEOUT": cmp.Or(p.Timeout, 15*time.Second), "WEBHOOKS_POLL": cmp.Or(p.Poll, 3*time.Second),
		"WEBHOOKS_DISABLE_AFTER": cmp.Or(p.Bears, 120*time.Hour), "WEBHOOKS_SLOTS": cmp.Or(p.Slots, 64), "WEBHOOKS_AT_ONCE": cmp.Or(p.AtOnce, 4),
	}
}

// ports are a replica's tables, and its transport for webhooks.
func (h *hooks) ports(r *replica) relay.Ports {
	if h == nil {
		return relay.Ports{Tables: storage{r}}
	}
	return relay.Ports{Seeds: h.caller.Seeds, Transport: posts{r}, Tables: storage{r}}
}

// lookup resolves receivers' names. Replicas call it.
func (h *hooks) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	r := h.hosts[strings.TrimSuffix(name, ".")]
	if r == nil {
		return nil, fmt.Errorf("simulated resolver: no %s", name)
	}
	return r.addresses()
}

// wanted draws the webhooks of an intent.
func (h *hooks) wanted(chance func(float64) bool) (all []intent.Webhook) {
	if h == nil || !chance(h.world.plan.Relay.Hooks.Hooked) {
		return nil
	}
	first := h.rand.IntN(len(h.receivers))
	for i := range 1 + h.rand.IntN(len(h.receivers)) {
		all = append(all, intent.Webhook{URL: h.receivers[(first+i)%len(h.receivers)].url})
	}
	return all
}

// sealed is a request in its recorded form.
func (h *hooks) sealed(r intent.Request) intent.Request {
	if h == nil {
		return r
	}
	return intent.Sealed(h.caller.Seal, r)
}

// see records the deliveries owed to receivers for an event.
func (h *hooks) see(e eventlog.Recorded) {
	if h == nil {
		return
	}
	h.world.judge.tell(h.secrets.recorded(e))
	id, err := intent.ParseStream(e.Stream)
	if err != nil {
		return
	}
	fact, err := h.codec.Decode(e.Name, e.Data)
	if err != nil {
		return // the judges report it
	}
	if asked, first := fact.(intent.Requested); first {
		if h.world.plan.Keys && asked.Request.Client == h.world.tenants.names[hostile] {
			return
		}
		if len(asked.Request.Webhooks) > 0 {
			h.world.judge.cases.Add(promises.P28)
		}
		for _, wanted := range asked.Request.Webhooks {
			if r := h.endpoints[notice.EndpointOf(asked.Request.Client, wanted.URL)]; r != nil {
				h.of[id] = append(h.of[id], r)
			} else {
				h.world.judge.fail("P22", "%s is to get %s, but no client has named it", wanted.URL, id)
			}
		}
	}
	if n := intent.SequenceOf(fact); n != 0 {
		h.last[id] = n
		for _, r := range h.of[id] {
			r.owe(notice.Ref{Intent: id, Seq: n})
		}
	}
}

// disabled records that an endpoint was disabled: its dead deliveries no longer hold back later
// ones.
func (h *hooks) disabled(id notice.EndpointID) {
	if r := h.endpoints[id]; r != nil {
		r.consumer.InOrder = false
	}
}

// startOver records that the queue was lost. It does nothing without a relay half.
func (h *hooks) startOver() {
	if h == nil {
		return
	}
	for _, r := range h.receivers {
		r.startOver()
	}
}

// reported judges the report of an attempt. An answer in time must not be reported as a failure,
// unless the replica was frozen.
func (h *hooks) reported(n notice.Report) {
	r := h.endpoints[n.Key.Endpoint]
	if r == nil || n.Outcome.Class == notice.Delivered {
		return
	}
	r.failed[notice.Ref{Intent: n.Key.Intent, Seq: n.Key.Seq}] = true
	if n.Outcome.Class == notice.Unknown {
		h.world.some[hookUnknown]++
	}
	if r.well() && h.world.plan.Crowd.Pause == 0 {
		h.world.judge.fail("P22", "%s takes all in time, and is told to have failed: %+v", r.host, n)
	}
}

// tellTime is the maximum delay of a delivery to a well receiver, regardless of other clients,
// given this world's faults. It is 0 if unknown: replicas freeze during attempts, which are
// retried minutes later.
func tellTime(p Plan) time.Duration {
	if p.Crowd.Pause > 0 {
		return 0
	}
	d := 10*time.Second + p.Relay.Hooks.Poll + p.Lag
	if c := p.Crowd; c.Crash+c.CrashAll+c.Point+c.Rolling+c.Lose+c.Rebuild > 0 { // a lease of the feeder, and one of a delivery
		d += 2 * (p.OwnerTTL + 2*p.Relay.Hooks.Timeout + 20*time.Second)
	}
	if s := p.Store; s.Down+s.Jump > 0 || s.Refuse+s.Lose+s.Cut+s.Slow+s.Hang > 0 || p.Cluster.Nodes > 0 {
		d += 5 * time.Minute
	}
	return d
}

// rows is the webhook queue without faults, for judges.
func (h *hooks) rows() memory.Notices {
	return h.world.store.Notices(h.world.settings.Webhooks.Policy())
}
