package check

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// health is the part of the answer of /health that is checked.
type health struct {
	Status       string
	Dependencies map[string]struct{ OK bool }
	Chains       []uint64
	Endpoints    []struct {
		ChainID        uint64
		Name           string
		Healthy        bool
		State, Problem string
	}
	Readers []struct {
		Name    string
		Lag     uint64
		Problem string
	}
}

// Ready judges the answer of /readyz. failed is why there is none.
func Ready(status int, failed error) Result {
	r := Result{Check: "ready", Says: "the service is ready"}
	switch {
	case failed != nil:
		r.State, r.Says = Critical, failed.Error()
	case status != http.StatusOK:
		r.State, r.Says = Critical, fmt.Sprintf("the service is not ready: /readyz answered %d", status)
	}
	return r
}

// Health judges the answer of /health. shows reports whether it has endpoints and readers: a service
// with API keys shows them to keys that can read.
func Health(answer []byte, t Thresholds) (results []Result, shows bool, err error) {
	var h health
	if err := json.Unmarshal(answer, &h); err != nil {
		return nil, false, fmt.Errorf("/health: %w", err)
	}
	for name, d := range h.Dependencies {
		r := Result{Check: "dependency", Labels: map[string]string{"dependency": name}, Says: name + " answers"}
		if !d.OK {
			r.Says, r.State = name+" does not answer", Critical
			if name == "redis" { // it only speeds things up
				r.State = Warning
			}
		}
		results = append(results, r)
	}
	for _, reader := range h.Readers {
		r := Result{Check: "reader", Labels: map[string]string{"reader": reader.Name}}
		r = above(r, float64(reader.Lag), float64(t.LagWarning), float64(t.LagCritical))
		r.Says = fmt.Sprintf("reader %s is %d events behind", reader.Name, reader.Lag)
		if reader.Problem != "" {
			r.State, r.Says = Critical, fmt.Sprintf("reader %s is stuck: %s", reader.Name, reader.Problem)
		}
		results = append(results, r)
	}
	return append(results, h.endpoints()...), len(h.Endpoints) > 0, nil
}

// endpoints judges the nodes of each chain together: one of several may be away.
func (h health) endpoints() (results []Result) {
	for _, id := range h.Chains {
		all, healthy, away := 0, 0, ""
		for _, e := range h.Endpoints {
			if e.ChainID != id {
				continue
			}
			if all++; e.Healthy {
				healthy++
				continue
			}
			away += fmt.Sprintf(", %s is %s", e.Name, e.State)
			if e.Problem != "" {
				away += " (" + e.Problem + ")"
			}
		}
		if all > 0 {
			results = append(results, endpointsOf(strconv.FormatUint(id, 10), healthy, all, away))
		}
	}
	return results
}

func endpointsOf(chain string, healthy, all int, away string) Result {
	r := Result{Check: "endpoints", Labels: map[string]string{"chain": chain}, Says: fmt.Sprintf("%d of %d endpoints of chain %s are healthy%s", healthy, all, chain, away)}
	n := float64(healthy)
	r.Value = &n
	switch {
	case healthy == 0:
		r.State = Critical
	case healthy < all:
		r.State = Warning
	}
	return r
}
