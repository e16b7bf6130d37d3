package main_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/metrics"
	"github.com/tempo-watchtower/watchtower/infra/tracing/tracetest"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// The program's work shows in metrics, in one trace, and in the log.
func TestObserved(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		collector := tracetest.New()
		defer collector.Close()
		s := w.service(t)
		s.Args = append(s.Args, "--tracing-endpoint", collector.URL+"/v1/traces", "--log-level", "debug")
		check(t, s.Start(w.ctx))
		payments, to := rig.Payments(71, 1)
		hash := payments[0].Hash

		const client, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		body := fmt.Sprintf(`{"chainId":%d,"transactions":["0x%x"]}`, rig.TempoChain, payments[0].Raw)
		req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, s.URL+"/v1/transactions", strings.NewReader(body))
		check(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", "00-"+client+"-"+span+"-01")
		res, err := http.DefaultClient.Do(req)
		check(t, err)
		res.Body.Close() //nolint:errcheck,gosec // only the status matters
		if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		w.delivered(t, s.URL, payments, rig.Sealed)
		w.paidOnce(t, to, 1)

		// An event is counted when its append has returned; a reader of the log may see it a
		// moment earlier.
		exposed := scrapeUntil(t, w, s, []string{
			"submissions_total", "http_request_seconds", "append_seconds", "broadcast_attempts_total", "first_send_delay_seconds",
			"stage_seconds", "verdicts_total", "finalized_total", "rpc_calls_total", "rpc_call_seconds", "chain_block", "reader_position", "build_info",
		})
		documented := map[string]bool{}
		described := metrics.New("")
		described.Endpoints(nil, nil, nil)
		for _, d := range described.Described() {
			documented[d.Name] = true
		}
		for line := range strings.Lines(exposed) {
			if name, ok := strings.CutPrefix(line, "# TYPE "); ok && strings.HasPrefix(name, "watchtower_") && !documented[strings.Fields(name)[0]] {
				t.Errorf("%s is exported and not described", strings.TrimSpace(name))
			}
		}

		check(t, s.Stop(w.ctx)) // which exports the last spans
		roots, accepted := collector.Named("transaction"), collector.Named("accepted")
		if len(roots) != 1 || hex.EncodeToString(roots[0].TraceId) != hash.String()[2:34] || tracetest.Attribute(roots[0], "watchtower.status") != "executed" {
			t.Errorf("root spans %v", roots)
		}
		if len(accepted) != 1 || len(accepted[0].Links) != 1 || hex.EncodeToString(accepted[0].Links[0].TraceId) != client {
			t.Errorf("acceptance %v", accepted)
		}
		for _, name := range []string{"broadcast", "mined", "finalized"} {
			if len(collector.Named(name)) == 0 {
				t.Errorf("no span %q", name)
			}
		}
		if requests := collector.Named("POST /v1/transactions"); len(requests) != 1 || hex.EncodeToString(requests[0].ParentSpanId) != span {
			t.Errorf("requests %v", requests)
		}
		for _, err := range collector.Errs() {
			t.Error(err)
		}
		log, err := os.ReadFile(s.Log)
		check(t, err)
		told := fmt.Sprintf(`"tx":"%s","chain":"42431","event":"tx.finalized.v1"`, hash)
		if !bytes.Contains(log, []byte(told)) {
			t.Error("the log does not tell of the transaction")
		}
	})
}

// scrape returns the metrics that Prometheus would read. scrapeUntil repeats it until all the
// named metrics are present.
func scrapeUntil(t *testing.T, w *world, s *rig.Service, figures []string) string {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		exposed := scrape(t, w, s)
		missing := slices.DeleteFunc(slices.Clone(figures), func(name string) bool {
			return strings.Contains(exposed, "# TYPE watchtower_"+name+" ")
		})
		if len(missing) == 0 {
			return exposed
		}
		select {
		case <-deadline:
			t.Fatalf("no figures of %v", missing)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func scrape(t *testing.T, w *world, s *rig.Service) string {
	t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, s.Metrics+"/metrics", nil)
	check(t, err)
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	defer res.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(res.Body)
	check(t, err)
	return string(text)
}
