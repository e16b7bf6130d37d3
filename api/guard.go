package api

import (
	"net/http"

	"github.com/tempo-watchtower/watchtower/api/webguard"
)

// guarded refuses requests that foreign pages have browsers send, for as long as keyless
// says that requests need no key. Where they need one, the key is the proof: no browser
// adds it by itself, and a proxy in front may have any name.
func (a *api) guarded(keyless func() bool, next http.Handler) http.Handler {
	guard := webguard.Guard{Hosts: a.Hosts, HostsSetting: "api.hosts", Origins: a.Origins} // among these [AnyOrigin] equals no origin
	if !a.internal {
		guard.OriginsSetting = "api.origins"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keyless() && r.RequestURI != "*" { // where nothing is
			if err := guard.Check(r); err != nil {
				exchangeOf(r).fail(w, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// notFromPages refuses a POST that a page of another origin could send without asking
// first, whether the endpoint reads the body or not.
func notFromPages(r *http.Request) error {
	if webguard.Preflighted(r) {
		return nil
	}
	return ErrUnsupportedMediaType.Because("a POST needs Content-Type: application/json, with or without a body")
}
