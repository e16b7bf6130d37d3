package rest

import (
	"net/http"
	"slices"
	"strings"
)

// AnyOrigin lets the scripts of all pages use the API.
const AnyOrigin = "*"

// crossOrigin lets scripts of pages from the given origins use next, by the CORS protocol
// (https://fetch.spec.whatwg.org/#http-cors-protocol). The API uses no cookies, so credentials
// are not allowed. Without origins it adds no headers.
func crossOrigin(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		switch {
		case slices.Contains(origins, AnyOrigin):
			header.Set("Access-Control-Allow-Origin", AnyOrigin)
		case origin != "" && slices.Contains(origins, origin):
			header.Set("Access-Control-Allow-Origin", origin)
		default:
			next.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
			header.Set("Access-Control-Allow-Headers", strings.Join([]string{
				"Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "Last-Event-ID", "Traceparent", "X-Api-Key", "X-Request-Id",
			}, ", "))
			header.Set("Access-Control-Max-Age", "7200")
			exchangeOf(r).route = "preflight"
			w.WriteHeader(http.StatusNoContent)
			return
		}
		header.Set("Access-Control-Expose-Headers", "ETag, Idempotency-Replayed, Link, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id")
		next.ServeHTTP(w, r)
	})
}
