package simulation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// ownersSecrets names the only request whose answer contains secrets.
const ownersSecrets = "a webhook's own"

// begin schedules the actions of receivers and their owners.
func (h *hooks) begin() {
	if h == nil {
		return
	}
	p, w, a := h.world.plan.Relay.Hooks, h.world, h.world.agenda
	for _, r := range h.receivers {
		r.ask()
		a.after(a.between(0, ownersLook), "owner", r.tend)
	}
	some := func() *receiver { return h.receivers[1+h.rand.IntN(len(h.receivers)-1)] }
	if len(h.receivers) == 1 {
		return
	}
	w.often(p.Ill, "receiver is ill", func() {
		some().fallIll(h.illness(), a.between(2*time.Second, 100*time.Second))
	})
	w.often(p.Forget, "receiver forgets", func() { some().forget() })
	w.often(p.Acts, "owner wishes", func() { some().act() })
	w.often(p.Acts, "figures", h.measured)
	if last := h.receivers[len(h.receivers)-1]; last.leaves() {
		a.after(time.Duration((0.2+0.5*h.rand.Float64())*w.plan.Hours*float64(time.Hour)), "receiver is gone", func() {
			w.faults["webhook: receiver is gone for good"]++
			last.recover()
			last.gone = true
		})
	}
}

// ask requests the signing secrets as the owner.
func (r *receiver) ask() {
	w := r.hooks.world
	w.ask(&wish{
		what: ownersSecrets, method: http.MethodPost, path: "/v1/webhooks", door: intentsDoor, body: fmt.Appendf(nil, `{"url":%q}`, r.url),
		told: func(out *recorder) bool {
			var own struct {
				ID      string
				Secrets []string
			}
			switch {
			case out.status == http.StatusUnprocessableEntity: // its name resolves elsewhere just now
			case out.status != http.StatusOK:
				return out.status < http.StatusInternalServerError
			case json.Unmarshal(out.body.Bytes(), &own) != nil || own.ID != r.id.String() || !slices.Equal(own.Secrets, r.secrets()):
				w.judge.fail("answers", "the owner of %s was told that it is %s, with other secrets", r.id, own.ID)
			}
			return true
		},
	})
}

// act performs a random owner's action.
func (r *receiver) act() {
	w := r.hooks.world
	known := r.known(r.consumer)
	switch n := r.hooks.rand.IntN(4); {
	case n == 0:
		w.faults["owner: tries its webhook"]++
		w.ask(&wish{what: "try", method: http.MethodPost, path: "/v1/webhooks/try", body: fmt.Appendf(nil, `{"url":%q}`, r.url), door: intentsDoor,
			told: func(out *recorder) bool { return out.status < http.StatusInternalServerError }})
	case n == 1:
		w.faults["owner: disables its webhook"]++
		r.order("disable", "", nil)
	case n == 2 && len(known) > 0:
		w.faults["owner: has known events redelivered"]++
		first := r.hooks.rand.IntN(len(known))
		r.order("redeliver", named(known[first:min(len(known), first+10)]), nil)
	default:
		w.ask(&wish{what: "look", method: http.MethodGet, path: "/v1/webhooks?limit=2", door: intentsDoor,
			told: func(out *recorder) bool { return out.status < http.StatusInternalServerError }})
	}
}

// order sends an owner's command about its webhook. It calls then once the command is accepted.
func (r *receiver) order(what, body string, then func()) {
	if body == "" {
		body = "{}" // a web page could send a POST without a body
	}
	r.request(http.MethodPost, "/"+what, body, func(out *recorder) {
		switch out.status {
		case http.StatusAccepted:
			if then != nil {
				then()
			}
		case http.StatusBadRequest, http.StatusForbidden, http.StatusUnsupportedMediaType:
			r.hooks.world.judge.fail("answers", "%s of %s is answered %d %s", what, r.id, out.status, out.body.String())
		}
	})
}

func (r *receiver) request(method, path, body string, told func(*recorder)) {
	r.hooks.world.ask(&wish{
		what: "webhook", method: method, path: "/v1/webhooks/" + r.id.String() + path, body: []byte(body), door: intentsDoor,
		told: func(out *recorder) bool {
			if out.status < http.StatusInternalServerError {
				told(out)
			}
			return out.status < http.StatusInternalServerError
		},
	})
}

// named is the body of a command about webhook deliveries.
func named(all []notice.Ref) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = fmt.Sprintf(`{"intent":"%s","sequence":%d}`, n.Intent, n.Seq)
	}
	return `{"notices":[` + strings.Join(texts, ",") + `]}`
}

// The interval of owners' checks of their webhooks, during and after the faults.
const (
	ownersLook = time.Minute
	ownersWait = 20 * time.Second
)

// tend checks the owner's webhook during the whole world. It enables it if disabled, and
// requests redelivery of dead and forgotten deliveries. After the faults it does not wait for
// the product's own retries, which may take hours.
func (r *receiver) tend() {
	w := r.hooks.world
	wait := ownersLook
	if w.healed {
		wait = ownersWait
	}
	w.agenda.after(wait, "owner looks", r.tend)
	r.inTime()
	r.listDead(notice.Ref{}, 0)
	if r.gone {
		return
	}
	r.request(http.MethodGet, "", "", func(out *recorder) {
		var shown struct{ Disabled notice.Reason }
		switch {
		case out.status == http.StatusNotFound: // as far as is known, no delivery was ever made there
		case json.Unmarshal(out.body.Bytes(), &shown) != nil:
			w.judge.fail("answers", "%s is shown as %s", r.id, out.body.String())
		case shown.Disabled != notice.Enabled:
			w.some[hookEnabled]++
			r.order("enable", "", nil)
		case w.healed && r.waits():
			r.order("disable", "", func() { r.order("enable", "", nil) })
		default:
			r.recall()
		}
	})
}

// inTime judges that a well receiver does not wait for others. After a loss of the queue its
// known deliveries come first, for as long as that takes.
func (r *receiver) inTime() {
	most := tellTime(r.hooks.world.plan)
	if !r.well() || most == 0 {
		return
	}
	late := 0
	for _, since := range r.owed {
		if min(time.Since(since), time.Since(r.again)) > most {
			late++
		}
	}
	if late > 0 {
		r.hooks.world.judge.fail("P22", "%s takes all in time, and is not told %d notices that were recorded more than %s ago", r.host, late, most)
	}
}

// waits reports whether a delivery is scheduled for later, after a failure.
func (r *receiver) waits() bool {
	return slices.ContainsFunc(r.hooks.rows().Open(r.id), func(n notice.Notice) bool {
		return n.Stage == notice.Queued && n.Attempts > 0 && time.Until(n.NextAt) > ownersWait
	})
}

// recall requests redelivery of the forgotten deliveries that have not been delivered since.
func (r *receiver) recall() {
	if len(r.forgotten) == 0 || r.illness != "" {
		return
	}
	lost := sortedRefs(r.forgotten)
	r.order("redeliver", named(lost[:min(len(lost), notice.RedeliverMax)]), nil)
}

func sortedRefs(all map[notice.Ref]bool) []notice.Ref {
	refs := make([]notice.Ref, 0, len(all))
	for n := range all {
		refs = append(refs, n)
	}
	slices.SortFunc(refs, func(a, b notice.Ref) int {
		return cmp.Or(bytes.Compare(a.Intent[:], b.Intent[:]), cmp.Compare(a.Seq, b.Seq))
	})
	return refs
}

// listDead reads the dead deliveries as the owner, page by page, and requests redelivery.
func (r *receiver) listDead(after notice.Ref, seen int) {
	path := "/dead?limit=100"
	if after.Seq > 0 {
		path += fmt.Sprintf("&intent=%s&sequence=%d", after.Intent, after.Seq)
	}
	r.request(http.MethodGet, path, "", func(out *recorder) {
		var page struct {
			Notices []struct {
				notice.Ref
				Event struct{ Sequence uint64 }
			}
			HasMore bool
		}
		if out.status == http.StatusNotFound {
			return
		}
		if err := json.Unmarshal(out.body.Bytes(), &page); err != nil {
			r.hooks.world.judge.fail("answers", "the dead letters of %s are shown as %s", r.id, out.body.String())
			return
		}
		for _, n := range page.Notices {
			if n.Event.Sequence != n.Seq {
				r.hooks.world.judge.fail("answers", "sequence %d of %s is shown with the event %d", n.Seq, n.Intent, n.Event.Sequence)
			}
			r.dead[n.Ref] = true
			after = n.Ref
		}
		switch seen += len(page.Notices); {
		case page.HasMore:
			r.listDead(after, seen)
		case seen > 0 && !r.gone:
			r.order("redeliver", "", nil)
		}
	})
}

// heal ends all illnesses.
func (h *hooks) heal() {
	if h == nil {
		return
	}
	for _, r := range h.receivers {
		r.recover()
	}
}

// unquiet lists the deliveries still owed to receivers.
func (h *hooks) unquiet() (still []string) {
	if h == nil {
		return nil
	}
	for _, r := range h.receivers {
		lacks := 0
		for n := range r.owed {
			if !r.givenUp(n.Intent, n.Seq) {
				lacks++
			}
		}
		if open := len(h.rows().Open(r.id)); lacks > 0 || open > 0 {
			still = append(still, fmt.Sprintf("%s lacks %d notices, %d are queued for it", r.host, lacks, open))
		}
	}
	return still
}

// finish judges the promises that show only at the end.
func (h *hooks) finish() {
	if h == nil {
		return
	}
	j := h.world.judge
	for _, r := range h.receivers {
		j.tell(r.consumer.Finish(h.world.lanes.intents, func(id chain.IntentID) bool { return slices.Contains(h.of[id], r) }))
	}
	all, err := h.rows().Endpoints(context.Background(), nil, notice.EndpointID{}, len(h.receivers)+1)
	if err != nil {
		panic(err) // it is memory
	}
	for _, e := range all {
		write(h.secrets.rows, []byte(e.URL))
	}
}

// kept judges P28.
func (h *hooks) kept() {
	if h != nil {
		h.world.judge.tell(h.secrets.found())
	}
}

// measured checks a replica's metrics.
func (h *hooks) measured() {
	h.world.ask(&wish{
		what: "figures", method: http.MethodGet, path: "/metrics", door: adminDoor,
		told: func(out *recorder) bool { return out.status == http.StatusOK },
	})
}
