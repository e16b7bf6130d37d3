package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tempo-watchtower/watchtower/api/webguard"
)

// ServeFigures serves a collector's metrics on address until end is called; an empty address
// serves nothing. The metrics need no key, so the guard refuses requests from web pages.
func ServeFigures(ctx context.Context, address string, guard webguard.Guard, figures prometheus.Collector) (end func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(figures)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	server := &http.Server{Handler: guard.Handler(mux), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // ends when it is closed
	}()
	return func() {
		_ = server.Close() // no caller waits for these metrics
		<-ended
	}, nil
}
