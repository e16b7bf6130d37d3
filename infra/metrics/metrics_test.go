package metrics_test

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/metrics/relay"
)

var update = flag.Bool("update", false, "write the table of docs/reference/observability.md")

const (
	docPath   = "../../docs/reference/observability.md"
	rulesPath = "../../deploy/prometheus/rules.yml"
	boards    = "../../deploy/grafana/dashboards/"
)

// whole has all metrics.
func whole() *metrics.Metrics {
	m := metrics.New("v")
	m.Endpoints(nil, nil, func() []metrics.Endpoint { return nil })
	m.Redis(func() metrics.RedisStatus { return metrics.RedisStatus{} })
	relay.New(m, time.Now)
	return m
}

// scrape is the text that Prometheus reads.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// The page lists exactly the program's metrics.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	var delivery, relays []metrics.Description
	for _, d := range whole().Described() {
		if strings.HasPrefix(d.Name, "watchtower_relay_") {
			relays = append(relays, d)
		} else {
			delivery = append(delivery, d)
		}
	}
	want := withTable(t, string(text), "metrics", delivery)
	want = withTable(t, want, "relay metrics", relays)
	if *update {
		if err := os.WriteFile(docPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("docs/reference/observability.md is not what is exported; run go test ./infra/metrics -update\n%s", diff)
	}
}

// withTable is the page with the metrics' table at its mark.
func withTable(t *testing.T, page, mark string, described []metrics.Description) string {
	t.Helper()
	begin, end := "<!-- "+mark+": begin -->\n", "<!-- "+mark+": end -->\n"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 || len(described) == 0 {
		t.Fatalf("the page has no place for the %s, or there are none", mark)
	}
	var table strings.Builder
	table.WriteString("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, d := range described {
		labels := "none"
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", d.Name, d.Kind, labels, d.Help)
	}
	return before + begin + table.String() + end + after
}

// Names and units follow Prometheus' conventions (prometheus.io/docs/practices/naming).
func TestNames(t *testing.T) {
	name := regexp.MustCompile(`^watchtower_[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{}
	for _, d := range whole().Described() {
		total, unit := strings.HasSuffix(d.Name, "_total"), regexp.MustCompile(`_(seconds|bytes|events)$`).MatchString(d.Name)
		switch {
		case seen[d.Name], !name.MatchString(d.Name), strings.Contains(d.Name, "millis"):
			t.Errorf("%s: not a name", d.Name)
		case total != (d.Kind == "counter"):
			t.Errorf("%s is a %s", d.Name, d.Kind)
		case d.Kind == "histogram" && !unit:
			t.Errorf("%s has no unit", d.Name)
		case !strings.HasSuffix(d.Help, "."):
			t.Errorf("%s: %q is no sentence", d.Name, d.Help)
		}
		seen[d.Name] = true
		for _, label := range d.Labels {
			if regexp.MustCompile(`hash|sender|address|nonce|url|error$`).MatchString(label) {
				t.Errorf("%s: label %s has no bound", d.Name, label)
			}
		}
	}
}

var accepted = tx.Accepted{Chain: 42431, Hash: chain.Hash{1}, EligibleAt: 1_800_000_000, At: time.Unix(1_799_999_990, 0)}

// count reports the facts of commands, one append each.
func count(t *testing.T, m *metrics.Metrics, commands ...tx.Command) {
	t.Helper()
	var s tx.State
	for _, c := range append([]tx.Command{tx.Accept{Accepted: accepted}}, commands...) {
		facts, err := s.Decide(c)
		if err != nil {
			t.Fatal(err)
		}
		before := s
		for _, f := range facts {
			s = s.Evolve(f)
		}
		if len(facts) > 0 {
			m.Transaction(before, s, facts)
		}
	}
}

func TestStages(t *testing.T) {
	m := metrics.New("v")
	at := func(seconds int64) time.Time { return time.Unix(1_800_000_000+seconds, 0) }
	block := chain.Block{Number: 5, Hash: chain.Hash{5}, Time: 1_800_000_006}
	other := chain.Block{Number: 5, Hash: chain.Hash{6}, Time: 1_800_000_006}
	count(t, m,
		tx.Report{Attempt: 1, At: at(2), Answers: []tx.Answer{{Endpoint: "a", Class: tx.Retry, Cause: tx.Funds}}},
		tx.Report{Attempt: 2, At: at(3), Answers: []tx.Answer{{Endpoint: "a", Class: tx.Taken}}},
		tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1}, At: at(7)},
		tx.LoseBlock{Was: block, Now: other, At: at(8)},
		tx.SeeReceipt{Receipt: chain.Receipt{Block: other, Status: 0}, At: at(9)},
		tx.Finalize{Final: other, At: at(20)},
		tx.LoseBlock{Was: other, Now: block, At: at(30)},
	)
	got := scrape(t, m)
	for _, line := range []string{
		`watchtower_stage_seconds_sum{chain="42431",stage="due_to_answered"} 2`,
		`watchtower_stage_seconds_sum{chain="42431",stage="due_to_mined"} 16`, // 7 and 9
		`watchtower_stage_seconds_sum{chain="42431",stage="block_to_told"} 4`, // 1 and 3
		`watchtower_stage_seconds_sum{chain="42431",stage="due_to_final"} 20`,
		`watchtower_stage_seconds_count{chain="42431",stage="due_to_answered"} 1`,
		`watchtower_rejections_total{cause="funds",chain="42431",class="retry"} 1`,
		`watchtower_verdicts_total{chain="42431",verdict="executed"} 1`,
		`watchtower_verdicts_total{chain="42431",verdict="executed_reverted"} 1`,
		`watchtower_finalized_total{chain="42431",verdict="executed"} 1`,
		`watchtower_reorged_total{chain="42431"} 1`,
		`watchtower_finality_violations_total{chain="42431"} 1`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("not told: %s", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// A first occurrence is an increase, because the metric existed before.
func TestChain(t *testing.T) {
	m := metrics.New("v")
	m.Chain("1")
	m.LeftOut("2", 3)
	m.LeftOut("2", 4)
	m.Submit("1", tx.Taken, true)
	m.Submit("1", tx.Known, false)
	got := scrape(t, m)
	for _, line := range []string{
		`watchtower_group_left_out_total{chain="1"} 0`, `watchtower_group_left_out_total{chain="2"} 7`,
		`watchtower_submits_total{chain="1",outcome="taken"} 1`, `watchtower_submits_total{chain="1",outcome="known"} 1`, `watchtower_submits_total{chain="1",outcome="unknown"} 0`,
		`watchtower_resubmits_total{chain="1",outcome="known"} 1`, `watchtower_resubmits_total{chain="1",outcome="taken"} 0`,
		`watchtower_finality_violations_total{chain="1"} 0`, `watchtower_reorged_total{chain="1"} 0`, `watchtower_verdicts_total{chain="1",verdict="invalid"} 0`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("not told: %s", line)
		}
	}
}

func TestVerdicts(t *testing.T) {
	m := metrics.New("v")
	at, block := time.Unix(1_800_000_100, 0), chain.Block{Number: 5, Hash: chain.Hash{5}, Time: 1_800_000_099}
	count(t, m, tx.SeeNonce{Block: block, Current: 9, At: at}, tx.Finalize{Final: block, At: at}, tx.Erase{At: at})
	count(t, m, tx.Cancel{At: at})
	count(t, m, tx.Report{Attempt: 1, Everyone: true, At: at, Answers: []tx.Answer{{Class: tx.Permanent}}})
	got := scrape(t, m)
	for _, line := range []string{
		`watchtower_verdicts_total{chain="42431",verdict="stale_by_nonce"} 1`,
		`watchtower_verdicts_total{chain="42431",verdict="canceled_locally"} 1`,
		`watchtower_verdicts_total{chain="42431",verdict="invalid"} 1`,
		`watchtower_finalized_total{chain="42431",verdict="stale_by_nonce"} 1`,
		`watchtower_payloads_erased_total{chain="42431"} 1`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("not told: %s", line)
		}
	}
}

// Values of another replica's work are no longer exported here.
func TestFiguresMove(t *testing.T) {
	m := metrics.New("v")
	m.Queue("1", tx.Depth{Open: 3, Sent: 2, Due: 2, OldestDue: 1500 * time.Millisecond})
	m.Reader("transactions", 7)
	m.Lag("transactions", 4)
	m.Stuck("transactions", 8)
	got := scrape(t, m)
	for _, line := range []string{
		`watchtower_queue_transactions{chain="1",state="open"} 3`, `watchtower_queue_due_transactions{chain="1"} 2`,
		`watchtower_receipt_backlog_transactions{chain="1"} 2`,
		`watchtower_queue_oldest_due_seconds{chain="1"} 1.5`, `watchtower_reader_lag_events{reader="transactions"} 4`,
		`watchtower_reader_stuck_position{reader="transactions"} 8`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("not told: %s", line)
		}
	}
	m.NoQueue()
	m.NotReader("transactions")
	m.NotStuck("transactions")
	if got := scrape(t, m); strings.Contains(got, "watchtower_queue") || strings.Contains(got, "watchtower_receipt") || strings.Contains(got, "watchtower_reader") {
		t.Errorf("told still:\n%s", got)
	}
}
