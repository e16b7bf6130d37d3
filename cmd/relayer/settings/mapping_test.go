package settings_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/metrics/relay"
)

const mapping = "../../../docs/howto/relay-mapping.md"

// inCode matches text in backticks.
var inCode = regexp.MustCompile("`([^`]+)`")

// row is a table row, by cells.
type row []string

// tables are the page's tables, by the heading above each.
func tables(t *testing.T) map[string][]row {
	t.Helper()
	text, err := os.ReadFile(mapping)
	if err != nil {
		t.Fatal(err)
	}
	all, heading := map[string][]row{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, is := strings.CutPrefix(line, "#"); is {
			heading = strings.TrimLeft(title, "# ")
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| there ") {
			continue
		}
		var r row
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			r = append(r, strings.TrimSpace(cell))
		}
		all[heading] = append(all[heading], r)
	}
	return all
}

// there checks the names in the first column.
func there(t *testing.T, rows []row, want ...string) {
	t.Helper()
	var got []string
	for _, r := range rows {
		for _, name := range inCode.FindAllStringSubmatch(r[0], -1) {
			got = append(got, name[1])
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not on the page", name)
		}
	}
}

// Each setting of the two kinds of relayers has a row. Each setting that the page places here
// exists, with the given default.
func TestMappedSettings(t *testing.T) {
	_, shown, err := resolve(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, s := range shown {
		defaults[s.Name] = s.Value
	}
	all := tables(t)
	leased, worker := all["Of services with a lease and a fencing token for each signer"], all["Of workers with one queue for each account and chain"]
	there(t, leased, "lease.duration", "lease.renewInterval", "clockSkewAllowance", "nonce.chainQuery.enabled", "nonce.chainQuery.mode", "nonce.nonceStateTimeout",
		"resubmit.enabled", "resubmit.interval", "confirmations.required", "confirmations.staleReceiptTimeout", "confirmations.receiptWorkers")
	there(t, worker, "MAX_INFLIGHT_PER_EOA", "MAX_RECYCLED_THRESHOLD", "TARGET_TRANSACTIONS_PER_EOA", "MIN_TRANSACTIONS_PER_EOA", "NONCE_STALL_TIMEOUT", "HEALTH_CHECK_INTERVAL")
	for _, r := range append(leased, worker...) {
		if len(r) != 5 {
			t.Fatalf("%d cells: %v", len(r), r)
		}
		if r[2] == "none" {
			continue
		}
		name := strings.Trim(r[2], "`")
		is, known := defaults[name]
		if said := r[3]; !known || said != is && !(said == "none" && is == "") {
			t.Errorf("%s is said to be %q, and is %q (%v)", name, said, is, known)
		}
	}
	// Settings named in sentences exist, too.
	text, err := os.ReadFile(mapping)
	if err != nil {
		t.Fatal(err)
	}
	_, named, _ := strings.Cut(string(text), "## Settings")
	for _, found := range regexp.MustCompile("`((?:lane|fee|signers|scheduler|owner|endpoints|webhooks)\\.[a-z-]+)`").FindAllStringSubmatch(named, -1) {
		if _, known := defaults[found[1]]; !known {
			t.Errorf("%s is no setting", found[1])
		}
	}
}

func TestMappedVariables(t *testing.T) {
	rows := tables(t)["Variables"]
	there(t, rows, "RELAYER_ENABLED", keys.VariableOfAll, keys.VariableOfOne+"0", keys.VariableOfOne+"1", "RELAYER_PRIVATE_KEY")
}

// The statuses, reasons and events that the page lists exist, and none is missing.
func TestMappedStatuses(t *testing.T) {
	all := tables(t)
	statuses, events := all["Statuses"], all["Events"]
	there(t, statuses, "allocated", "broadcasted", "mined", "reverted", "dropped", "replaced", "failed")
	known := map[string]bool{}
	for _, s := range intent.Statuses() {
		known[string(s)] = true
	}
	for _, r := range []intent.Reason{intent.Withdrawn, intent.Deadline, intent.Simulation, intent.Refused, intent.Reverted} {
		known[string(r)] = true
	}
	told := map[string]bool{}
	for _, s := range []intent.Said{intent.TxAccepted{}, intent.TxSubmitted{}, intent.TxReplaced{}, intent.TxReceiptUpdated{}, intent.TxConfirmed{}, intent.TxFailed{}} {
		text, err := intent.Notice{Said: s}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		name := regexp.MustCompile(`"type":"([A-Za-z]+)"`).FindStringSubmatch(string(text))[1]
		known[name], told[name] = true, true
	}
	for _, r := range statuses {
		for _, name := range inCode.FindAllStringSubmatch(r[1], -1) {
			if !known[name[1]] {
				t.Errorf("%s is said for %s, and is not known here", name[1], r[0])
			}
		}
	}
	for _, r := range events {
		if name := inCode.FindStringSubmatch(r[1]); name == nil || !told[name[1]] {
			t.Errorf("%s is %s, which is not told", r[0], r[1])
		} else {
			delete(told, name[1])
		}
	}
	for name := range told {
		t.Errorf("%s is told, and not on the page", name)
	}
	text, err := os.ReadFile(mapping)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range intent.Statuses() {
		if !strings.Contains(string(text), "`"+string(s)+"`") {
			t.Errorf("the status %s is not on the page", s)
		}
	}
}

// Every metric and alert that the page lists exists.
func TestMappedMetrics(t *testing.T) {
	m := metrics.New("v")
	relay.New(m, time.Now)
	exported := map[string]bool{}
	for _, d := range m.Described() {
		exported[d.Name] = true
	}
	all := tables(t)
	there(t, all["Metrics"], "lease_acquire_total{result}", "lease_fenced_total", "tx_create_total{result}", "tx_submit_total{result}", "receipt_check_total{result}", "confirmations_newFork_total")
	for _, r := range all["Metrics"] {
		named := 0
		for _, name := range regexp.MustCompile("`(watchtower_[a-z_]+)`").FindAllStringSubmatch(r[1], -1) {
			if named++; !exported[name[1]] {
				t.Errorf("%s is not exported", name[1])
			}
		}
		if named == 0 {
			t.Errorf("nothing is said for %s", r[0])
		}
	}
	var rules strings.Builder
	for _, file := range []string{"rules.yml", "relay.yml"} {
		text, err := os.ReadFile("../../../deploy/prometheus/" + file)
		if err != nil {
			t.Fatal(err)
		}
		rules.Write(text)
	}
	for _, r := range all["Alerts"] {
		for _, name := range inCode.FindAllStringSubmatch(r[1], -1) {
			if !strings.Contains(rules.String(), "alert: "+name[1]+"\n") {
				t.Errorf("there is no alert %s", name[1])
			}
		}
	}
	if len(all["Alerts"]) == 0 {
		t.Error("no alert is on the page")
	}
}
