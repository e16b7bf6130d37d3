package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// figures are a relayer's Prometheus metrics: each line's value by name and labels, and the
// text.
type figures struct {
	text   string
	values map[string]float64
}

func (w *world) figures(t *testing.T, s *rig.Service) figures {
	t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, s.Metrics+"/metrics", nil)
	check(t, err)
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	defer res.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(res.Body)
	check(t, err)
	f := figures{string(text), map[string]float64{}}
	for line := range strings.Lines(f.text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok {
			name, value, ok = strings.Cut(strings.TrimSpace(line), " ")
		}
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			f.values[strings.TrimSuffix(name, "}")] = n
		}
	}
	return f
}

// sum adds the values of a metric whose labels contain all parts.
func (f figures) sum(name string, parts ...string) (sum float64, found bool) {
	for line, value := range f.values {
		of, labels, _ := strings.Cut(line, "{")
		all := of == "watchtower_relay_"+name
		for _, part := range parts {
			all = all && strings.Contains(labels, part)
		}
		if all {
			sum, found = sum+value, true
		}
	}
	return sum, found
}

// A relayer exports every relay metric on the page after its everyday work, except rare ones,
// and no metric that is missing from the page. No label has an intent, a hash or a URL.
func TestFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[0], inFiles, webhookFlags(t)...)
	h := newHook(t)
	const each = 4
	var requests []intent.Request
	hooked := map[chain.IntentID]bool{}
	for n := range each {
		r := w.pool(fmt.Sprint("told-", n))
		r.Webhooks = []intent.Webhook{{URL: h.url}}
		w.ask(t, r)
		hooked[r.ID()] = true
		requests = append(requests, w.one(n%2, fmt.Sprint("asked-", n)))
	}
	w.limit(t)
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c, operator := w.client(t, s), w.operator(s)
	operator.order(t, http.MethodPut, fmt.Sprintf("/budgets/%d", w.id), map[string]any{
		"account": map[string]any{"kind": "chain"}, "fee": chain.NewAmount(1 << 63).Times(1 << 62),
	})
	w.create(t, []client{c}, requests...)
	w.create(t, []client{c}, requests[0])
	w.done(t, s)
	w.told(t, h, func(id chain.IntentID) bool { return hooked[id] })

	alice := `signer="` + wallet.Dev(0).Address().String() + `"`
	here := fmt.Sprintf(`chain="%d"`, w.id)
	var f figures
	for _, x := range []struct {
		name   string
		labels []string
		want   float64 // minimum
	}{
		{"requests_total", []string{`outcome="created"`}, each},
		{"requests_total", []string{`outcome="known"`}, 1},
		{"intents_ended_total", []string{here, `outcome="completed"`}, 2 * each},
		{"stage_seconds_count", []string{here, `stage="asked_to_assigned"`}, 2 * each},
		{"stage_seconds_count", []string{here, `stage="assigned_to_signed"`}, 2 * each},
		{"stage_seconds_count", []string{here, `stage="signed_to_mined"`}, 2 * each},
		{"stage_seconds_count", []string{here, `stage="asked_to_completed"`}, 2 * each},
		{"lanes_held", []string{here, `key="protocol"`}, float64(len(keys))},
		{"lane_opened_total", []string{here, `from="nobody"`}, float64(len(keys))},
		{"lane_leases_total", []string{`outcome="won"`}, float64(len(keys))},
		{"lane_budget_left_nonces", []string{here, alice}, 100},
		{"lane_next_nonce", []string{here, alice}, 2},
		{"lane_turn_seconds_count", []string{here}, 10},
		{"attempts_total", []string{here, `kind="first"`}, 2 * each},
		{"signatures_total", []string{`outcome="signed"`}, 2 * each},
		{"signature_seconds_count", nil, 2 * each},
		{"signer_state", []string{here, `state="serving"`}, float64(len(keys))},
		{"signer_balance", []string{here, alice}, 1},
		{"budget_used", []string{here, `money="fee"`}, 1},
		{"budget_limit", []string{here, `money="fee"`}, 1},
		{"fee_offered_per_gas", []string{here}, 1},
		{"fee_ceiling_per_gas", []string{here}, 1},
		{"notice_attempts_total", []string{`outcome="delivered"`}, 4 * each},
		{"notice_delay_seconds_count", nil, 4 * each},
		{"webhooks", []string{`state="working"`}, 1},
	} {
		w.becomes(t, fmt.Sprintf("%s %v is %g", x.name, x.labels, x.want), func() bool {
			f = w.figures(t, s)
			got, _ := f.sum(x.name, x.labels...)
			return got >= x.want
		})
	}
	check(t, s.Stop(w.ctx))
	compareWithPage(t, f)
}

// seldom are metrics of rare events.
var seldom = []string{
	"intents_reopened_total", "intents_requeued_total", "new_forks_total", "guard_refusals_total",
	"lane_filled_nonces_total", "lane_reclaimed_nonces_total", "lane_released_nonces_total", "lane_unlanded_nonces_total",
}

func compareWithPage(t *testing.T, f figures) {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/observability.md")
	check(t, err)
	page := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(watchtower_[a-z_]+)` \\| (?:counter|gauge|histogram) ").FindAllStringSubmatch(string(text), -1) {
		page[row[1]] = true
	}
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^# TYPE (watchtower_[a-z_]+) ").FindAllStringSubmatch(f.text, -1) {
		told[row[1]] = true
		if !page[row[1]] {
			t.Errorf("the page does not have %s", row[1])
		}
	}
	for name := range page {
		if short, ours := strings.CutPrefix(name, "watchtower_relay_"); ours && !told[name] && !slices.Contains(seldom, short) {
			t.Errorf("%s is on the page, and was never told", name)
		}
	}
	if wild := regexp.MustCompile(`(?m)^watchtower_relay_.*(0x[0-9a-f]{64}|0x[0-9a-f]{32}"|//|` + hush + `).*$`).FindString(f.text); wild != "" {
		t.Errorf("a label without a bound: %s", wild)
	}
}
