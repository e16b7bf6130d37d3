package rest

import (
	"net/http"

	"github.com/tempo-watchtower/watchtower/api/webguard"
)

// guarded refuses requests that pages of other sites make browsers send, while keyless reports
// that requests need no key. Where a key is needed, the key is enough: browsers never add it by
// themselves, and a proxy in front may use any host name.
func (a *api) guarded(keyless func() bool, next http.Handler) http.Handler {
	guard := webguard.Guard{Hosts: a.Hosts, HostsSetting: "api.hosts", Origins: a.Origins} // in Origins, [AnyOrigin] equals no origin
	if !a.internal {
		guard.OriginsSetting = "api.origins"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keyless() && r.RequestURI != "*" { // "*" has no route
			if err := guard.Check(r); err != nil {
				exchangeOf(r).fail(w, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// notFromPages refuses a POST that a page of another origin could send without a CORS
// preflight, whether the endpoint reads the body or not.
func notFromPages(r *http.Request) error {
	if webguard.Preflighted(r) {
		return nil
	}
	return ErrUnsupportedMediaType.Because("a POST needs Content-Type: application/json, with or without a body")
}
