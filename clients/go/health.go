package watchtower

import (
	"context"
	"net/http"
)

// Health is the state of the service.
type Health struct {
	Status        string   `json:"status"` // ok or degraded
	Version       string   `json:"version"`
	UptimeSeconds int64    `json:"uptimeSeconds"`
	Deployment    string   `json:"deployment"` // the service's name in messages that owners sign to cancel groups
	Chains        []uint64 `json:"chains"`
	Dependencies  map[string]struct {
		OK bool `json:"ok"`
	} `json:"dependencies"`
	Endpoints []struct {
		ChainID uint64  `json:"chainId"`
		Name    string  `json:"name"`
		Healthy bool    `json:"healthy"`
		Score   float64 `json:"score"`
		Head    uint64  `json:"head"`
		Problem string  `json:"problem"`
	} `json:"endpoints"`
}

// Health returns the state of the service. A degraded service is no error.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	err := c.call(ctx, request{method: http.MethodGet, path: "/health", alsoOK: http.StatusServiceUnavailable}, &h)
	return h, err
}
