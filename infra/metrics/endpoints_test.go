package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestEndpoints(t *testing.T) {
	m := New("test")
	m.Endpoints([]string{"healthy", "tripped"}, []string{"closed", "open"}, func() []Endpoint {
		return []Endpoint{
			{Chain: "1", Name: "a", State: "healthy", Breaker: "closed", Score: 0.5, Latency: 250 * time.Millisecond, BudgetNow: 3, HasRate: true, InFlight: 2, Slots: 64},
			{Chain: "1", Name: "b", State: "tripped", Breaker: "open", Trips: 7, Withheld: 8, Contradictions: 9, Differences: 10, BudgetToday: 5, HasDaily: true},
		}
	})
	m.Call("1", "a", "eth_call", "state", "ok", time.Millisecond)
	m.Call("1", "a", "eth_call", "state", "timeout", time.Second)
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	got := map[string]bool{}
	for line := range strings.Lines(answer.Body.String()) {
		got[strings.TrimSpace(line)] = true
	}
	for _, want := range []string{
		`watchtower_rpc_calls_total{chain="1",class="state",endpoint="a",method="eth_call",outcome="ok"} 1`,
		`watchtower_rpc_calls_total{chain="1",class="state",endpoint="a",method="eth_call",outcome="timeout"} 1`,
		`watchtower_rpc_call_seconds_count{chain="1",class="state",endpoint="a"} 2`,
		`watchtower_rpc_endpoint_score{chain="1",endpoint="a"} 0.5`,
		`watchtower_rpc_endpoint_latency_seconds{chain="1",endpoint="a"} 0.25`,
		`watchtower_rpc_endpoint_in_flight_requests{chain="1",endpoint="a"} 2`,
		`watchtower_rpc_endpoint_in_flight_limit_requests{chain="1",endpoint="a"} 64`,
		`watchtower_rpc_endpoint_budget_left_calls{chain="1",endpoint="a",window="burst"} 3`,
		`watchtower_rpc_endpoint_budget_left_calls{chain="1",endpoint="b",window="day"} 5`,
		`watchtower_rpc_endpoint_state{chain="1",endpoint="a",state="healthy"} 1`,
		`watchtower_rpc_endpoint_state{chain="1",endpoint="a",state="tripped"} 0`,
		`watchtower_rpc_endpoint_state{chain="1",endpoint="b",state="healthy"} 0`,
		`watchtower_rpc_endpoint_state{chain="1",endpoint="b",state="tripped"} 1`,
		`watchtower_rpc_endpoint_breaker{chain="1",endpoint="b",state="open"} 1`,
		`watchtower_rpc_endpoint_trips_total{chain="1",endpoint="b"} 7`,
		`watchtower_rpc_endpoint_withheld_calls_total{chain="1",endpoint="b"} 8`,
		`watchtower_rpc_endpoint_contradictions_total{chain="1",endpoint="b"} 9`,
		`watchtower_rpc_endpoint_differences_total{chain="1",endpoint="b"} 10`,
	} {
		if !got[want] {
			t.Errorf("no line %s", want)
		}
	}
	for _, other := range []string{`endpoint="a",window="day"`, `endpoint="b",window="burst"`} {
		if strings.Contains(answer.Body.String(), other) {
			t.Errorf("a budget that is not there: %s", other)
		}
	}
}
