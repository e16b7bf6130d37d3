package check

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// standard are the thresholds of the flags' defaults.
func standard() Thresholds {
	return Thresholds{LagWarning: 10_000, LagCritical: 100_000, OldestWarning: 5, OldestCritical: 15}
}

// alerts are the alerts of the deployment, by name: their expressions and severities.
func alerts(t *testing.T) map[string]struct{ expr, severity string } {
	t.Helper()
	all := map[string]struct{ expr, severity string }{}
	for _, name := range []string{"rules.yml", "relay.yml"} {
		text, err := os.ReadFile("../../../deploy/prometheus/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Labels      map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					all[r.Alert] = struct{ expr, severity string }{r.Expr, r.Labels["severity"]}
				}
			}
		}
	}
	return all
}

// bound is the number at the end of an alert's expression.
var bound = regexp.MustCompile(`(>=?|==) ([0-9.]+)$`)

// Each alert is judged by a condition with the alert's metric, labels and bound, or is listed with the
// reason why it is not.
func TestConditionsAreTheAlerts(t *testing.T) {
	all := alerts(t)
	covered := unseen()
	for _, c := range conditions() {
		alert, is := all[c.alert]
		if !is || !strings.Contains(alert.expr, c.metric) {
			t.Errorf("%s: the alert %s is not about %s: %q", c.check, c.alert, c.metric, alert.expr)
		}
		covered[c.alert] = "judged"
		for name, value := range c.only {
			if !strings.Contains(alert.expr, name+`="`+value+`"`) {
				t.Errorf("%s: %s=%s is not in %q", c.check, name, value, alert.expr)
			}
		}
		warning, critical := c.warning, c.critical
		if c.bound != nil {
			warning, critical = c.bound(standard())
		}
		own := critical
		if alert.severity == "ticket" {
			own = warning
		}
		found := bound.FindStringSubmatch(alert.expr)
		if c.kind == stillFor || c.kind == off || found == nil {
			continue
		}
		want, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if found[1] != ">" {
			want-- // whole numbers
		}
		if own != want {
			t.Errorf("%s: the alert %s has the bound %v, not %v", c.check, c.alert, want, own)
		}
	}
	for name := range all {
		if covered[name] == "" {
			t.Errorf("nothing judges the alert %s, and nothing says why not", name)
		}
	}
	for name := range covered {
		if _, is := all[name]; !is {
			t.Errorf("there is no alert %s", name)
		}
	}
}

const metrics = `# TYPE watchtower_queue_oldest_due_seconds gauge
watchtower_queue_oldest_due_seconds{chain="1"} 0.5
watchtower_queue_oldest_due_seconds{chain="42431"} 20
# TYPE watchtower_reader_lag_events gauge
watchtower_reader_lag_events{reader="scheduler"} 10001
# TYPE watchtower_finality_violations_total counter
watchtower_finality_violations_total{chain="1"} 2
# TYPE watchtower_chain_block gauge
watchtower_chain_block{chain="1",tag="head"} 7
watchtower_chain_block{chain="1",tag="final"} 5
# TYPE watchtower_rpc_endpoint_state gauge
watchtower_rpc_endpoint_state{chain="1",endpoint="a",state="healthy"} 1
watchtower_rpc_endpoint_state{chain="1",endpoint="a",state="lagging"} 0
watchtower_rpc_endpoint_state{chain="1",endpoint="b",state="lagging"} 1
# TYPE watchtower_relay_lane_drift_nonces gauge
watchtower_relay_lane_drift_nonces{chain="1",signer="0x01"} -1
# TYPE watchtower_redis_up gauge
watchtower_redis_up 0
`

// states are the results' states, by name.
func states(results []Result) map[string]string {
	all := map[string]string{}
	for _, r := range results {
		all[r.Name()] = r.State.String()
	}
	return all
}

// Metrics are judged by themselves, and changes from the second check on.
func TestMetrics(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	first, seen, err := Metrics([]byte(metrics), standard(), false, Memory{}, now)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"oldest_1": "OK", "oldest_42431": "CRITICAL", "reader_scheduler": "WARNING", "endpoints_1": "WARNING",
		"drift_1_0x01": "CRITICAL", "redis": "WARNING",
	}
	if d := cmp.Diff(want, states(first)); d != "" {
		t.Error(d)
	}
	file := filepath.Join(t.TempDir(), "memory")
	if m, err := Remember(file); err != nil || len(m.Series) != 0 {
		t.Errorf("of no file: %+v, %v", m, err)
	}
	if err := seen.Keep(file); err != nil {
		t.Fatal(err)
	}
	last, err := Remember(file)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(metrics, `total{chain="1"} 2`, `total{chain="1"} 3`, 1)
	moved = strings.Replace(moved, `tag="final"} 5`, `tag="final"} 6`, 1)
	second, _, err := Metrics([]byte(moved), standard(), true, last, now.Add(301*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]string{
		"oldest_1": "OK", "oldest_42431": "CRITICAL", "drift_1_0x01": "CRITICAL", "redis": "WARNING",
		"finality_1": "CRITICAL", "head_1": "CRITICAL", "final_1": "OK",
	}
	if d := cmp.Diff(want, states(second)); d != "" {
		t.Error(d)
	}
	if err := os.WriteFile(file, []byte("no memory"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Remember(file); err == nil {
		t.Error("a broken memory is taken")
	}
	if _, _, err := Metrics([]byte("no metrics{"), standard(), false, Memory{}, now); err == nil {
		t.Error("broken metrics are taken")
	}
}

// The answer of /health is judged by its dependencies, readers and endpoints.
func TestHealth(t *testing.T) {
	const answer = `{"status":"degraded","dependencies":{"database":{"ok":false},"redis":{"ok":false}},"chains":[1,5,7],
	 "endpoints":[{"chainId":1,"name":"a","healthy":true,"state":"healthy"},{"chainId":1,"name":"b","healthy":false,"state":"lagging","problem":"it lags"},
	  {"chainId":5,"name":"c","healthy":false,"state":"broken"}],
	 "readers":[{"name":"scheduler","lag":3},{"name":"groups","lag":3,"problem":"cannot decode"},{"name":"owners","lag":100001}]}`
	results, inside, err := Health([]byte(answer), standard())
	if err != nil || !inside {
		t.Fatal(inside, err)
	}
	want := map[string]string{
		"dependency_database": "CRITICAL", "dependency_redis": "WARNING", "reader_scheduler": "OK", "reader_groups": "CRITICAL", "reader_owners": "CRITICAL",
		"endpoints_1": "WARNING", "endpoints_5": "CRITICAL",
	}
	if d := cmp.Diff(want, states(results)); d != "" {
		t.Error(d)
	}
	if r := Ready(503, nil); r.State != Critical {
		t.Errorf("%+v", r)
	}
	if _, _, err := Health([]byte("<html>"), standard()); err == nil {
		t.Error("a page is taken for a health")
	}
}

// The most urgent state counts, and each format shows it.
func TestReport(t *testing.T) {
	n, w := 2.0, 5.0
	r := reportOf([]Result{
		{Check: "ready", Says: "the service is ready"},
		{Check: "metrics", State: Unknown, Says: "no answer"},
		{Check: "oldest", State: Critical, Says: "late | very\nlate", Labels: map[string]string{"chain": `a"b`}, Value: &n, Unit: "s", Warning: &w},
	})
	if r.State != Critical {
		t.Errorf("%+v", r)
	}
	var text bytes.Buffer
	if err := nagios(&text, "watchtower", r); err != nil {
		t.Fatal(err)
	}
	want := "WATCHTOWER CRITICAL: late / very late; and 1 more | 'oldest_a\"b'=2s;5\nCRITICAL oldest: late / very late\nUNKNOWN metrics: no answer\n"
	if text.String() != want {
		t.Errorf("%q", text.String())
	}
	text.Reset()
	if err := prometheus(&text, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `watchtower_check_state{check="oldest",chain="a\"b"} 2`+"\n") || !strings.Contains(text.String(), `watchtower_check_value{check="oldest",chain="a\"b"} 2`+"\n") {
		t.Error(text.String())
	}
	order := []State{OK, Warning, Unknown, Critical}
	if !slices.IsSortedFunc(order, func(a, b State) int { return a.rank() - b.rank() }) {
		t.Error("the order of urgency")
	}
}
