package simulation

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/simulation/memory"
)

// party is a group of clients.
type party int

const (
	victim   party = iota // the clients that a world judges; one client if there are keys
	operator              // of the service
	hostile               // a client that tries to harm others
	page                  // a web page in a browser that reaches the service; it has no key
)

// String is the party's client name.
func (p party) String() string {
	return [...]string{"victim", "operator", "hostile", "page"}[p]
}

// tenants are the API keys of a world, the owners of its data, and the checks of clients'
// answers.
type tenants struct {
	world   *world
	tokens  map[party]string
	names   map[party]string // client names in the log; empty without keys
	secrets promises.Secrets
}

// hostileRate is the rate limit of the hostile client's key.
var hostileRate = access.Rate{PerSecond: 100, Burst: 400} //nolint:gochecknoglobals // constant

func newTenants(w *world) *tenants {
	return &tenants{world: w, tokens: map[party]string{}, names: map[party]string{}}
}

// createKeys creates a key for each client, as an operator does before the service starts.
func (t *tenants) createKeys() error {
	if !t.world.plan.Keys {
		return nil
	}
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], t.world.plan.Seed)
	keys := commands.Keys{
		AccessKeys: commands.AccessKeys{Store: founding{t.world.store, t.world}, Codec: access.Codec(), Random: rand.NewChaCha8(seed)},
		Now:        time.Now,
	}
	client := []access.Scope{access.Submit, access.Read, access.Cancel, access.RPC}
	for _, k := range []struct {
		party  party
		scopes []access.Scope
		rate   *access.Rate
	}{{victim, client, nil}, {operator, []access.Scope{access.Admin}, nil}, {hostile, client, &hostileRate}} {
		token, key, err := keys.Create(context.Background(), access.Key{Name: k.party.String(), Client: k.party.String(), Scopes: k.scopes, Rate: k.rate}, eventlog.Meta{Actor: "simulation"})
		if err != nil {
			return err
		}
		t.tokens[k.party], t.names[k.party] = token, key.Owner()
	}
	return nil
}

// founding is the store before any replica runs.
type founding struct {
	*memory.Store
	world *world
}

// Append appends events, and reports them to the world.
func (f founding) Append(ctx context.Context, s eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	if f.world.cluster != nil {
		return f.world.cluster.found(s, expected, events)
	}
	a, err := f.Store.Append(ctx, s, expected, events...)
	if err == nil && !a.Repeated {
		f.world.appended(a, len(events))
	}
	return a, err
}

// owns records the client that submitted signed bytes.
func (t *tenants) owns(p party, all ...*signed) {
	if !t.world.plan.Keys {
		return
	}
	for _, one := range all {
		t.secrets.Keep(t.names[p], "the transaction", one.hash[:])
		t.secrets.Keep(t.names[p], "the signed bytes", one.raw)
		t.secrets.Keep(t.names[p], "the signature", signatureIn(one.raw))
	}
}

// ownsIntent records the client that submitted an intent.
func (t *tenants) ownsIntent(p party, id chain.IntentID, data []byte) {
	if !t.world.plan.Keys {
		return
	}
	t.secrets.Keep(t.names[p], "the intent", id[:])
	t.secrets.Keep(t.names[p], "the calldata", data)
}

// sent records that a node has the bytes: from then on they are public.
func (t *tenants) sent(raw []byte) {
	if !t.world.plan.Keys {
		return
	}
	hash := chain.Keccak(raw)
	t.secrets.Publish(hash[:])
	t.secrets.Publish(raw)
	t.secrets.Publish(signatureIn(raw))
	if s, err := t.world.judge.decode(raw); err == nil {
		for _, c := range s.Calls {
			t.secrets.Publish(c.Input)
		}
	}
}

// signatureIn is s of the signature, as in the transaction's JSON: the last part of an Ethereum
// transaction, and before v in a Tempo transaction.
func signatureIn(raw []byte) []byte {
	const tempo, size = 0x76, 32
	end := len(raw)
	if raw[0] == tempo {
		end--
	}
	return raw[end-size : end]
}

// shown judges the content of an answer to a client.
func (t *tenants) shown(r *wish, out *recorder) {
	if !t.world.plan.Keys || r.from == operator {
		return
	}
	asked := r.path + "\n" + string(r.body)
	t.world.judge.tell(t.secrets.Shown(promises.Shown{
		Client: t.names[r.from], Request: asked, Body: out.body.Bytes(), Foreign: r.foreign, Status: out.status,
		Node: strings.HasPrefix(r.path, "/rpc"),
	}))
}

// problemCode is the code of a refusal; empty without one.
func problemCode(body []byte) string {
	var p struct {
		Code string `json:"code"`
	}
	if !bytes.HasPrefix(body, []byte("{")) || json.Unmarshal(body, &p) != nil {
		return ""
	}
	return p.Code
}

// said is a short form of an answer, for comparison.
func said(out *recorder) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", out.status, problemCode(out.body.Bytes())))
}
