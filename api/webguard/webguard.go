// Package webguard refuses requests that a web page made a browser send to a listener
// that answers without API keys. A browser on the same machine or network reaches such a
// listener, so the address of the connection proves nothing about the sender.
//
// Three headers tell a page's request from a client's. Browsers set them, scripts cannot:
//
//   - Host: a page whose name was rebound to the listener's address (DNS rebinding) sends
//     that name. IP addresses cannot be rebound, and browsers resolve localhost themselves.
//   - Origin: browsers send it with every cross-origin request that a script may read and
//     with every POST.
//   - Sec-Fetch-Site: browsers send it with all requests to loopback and https, also with
//     requests for images, forms and frames, which carry no Origin.
//
// Browsers do not count the unspecified addresses (0.0.0.0, [::]) as loopback, nor all of them
// loopback addresses in the form of IPv6 ([::ffff:127.0.0.1]). They send no Sec-Fetch-Site there,
// although such a connection reaches a listener on loopback. No client needs these addresses, so
// they are refused as Host.
//
// X-Forwarded-Host and its like are never read.
//
// Sources: https://fetch.spec.whatwg.org/#origin-header, https://www.w3.org/TR/fetch-metadata,
// RFC 9110 section 7.2 (Host).
package webguard

import (
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The refusals of [Guard.Check].
const (
	ErrHost   = eventlog.Refusal("host-not-allowed")
	ErrOrigin = eventlog.Refusal("origin-not-allowed")
)

// Guard holds the names and origins that a listener accepts. The zero value accepts specified IP
// addresses and loopback names as Host, and only the listener's own origin.
type Guard struct {
	// Hosts are further names that clients reach the listener by, without ports.
	Hosts []string
	// Origins are further origins, scheme://host or scheme://host:port in lower case,
	// whose pages may send requests.
	Origins []string
	// HostsSetting and OriginsSetting name the settings that Hosts and Origins come from, for
	// refusals; empty where there is none.
	HostsSetting, OriginsSetting string
	// AnyHost switches the check of Host off, for listeners whose TLS certificate proves
	// the name.
	AnyHost bool
}

// Check returns nil unless a foreign page caused the request. Then it returns [ErrHost] or
// [ErrOrigin] with the reason.
func (g Guard) Check(r *http.Request) error {
	if name, ok := hostname(r.Host); ok && reachesLoopback(name) {
		return ErrHost.Because("the request's Host is an address that browsers do not take for this machine: use 127.0.0.1, [::1] or localhost")
	}
	if !g.AnyHost && !g.knowsHost(r.Host) {
		if g.HostsSetting == "" {
			return ErrHost.Because("the request's Host is neither an IP address nor localhost")
		}
		return ErrHost.Because("the request's Host is neither an IP address nor localhost nor one of %s", g.HostsSetting)
	}
	switch origins := r.Header["Origin"]; {
	case len(origins) == 1 && (origins[0] == ownOrigin(r) || slices.Contains(g.Origins, origins[0])):
		return nil // an allowed origin overrides Sec-Fetch-Site
	case len(origins) > 0:
		if g.OriginsSetting == "" {
			return ErrOrigin.Because("the request's Origin is not the service's own")
		}
		return ErrOrigin.Because("the request's Origin is neither the service's own nor one of %s", g.OriginsSetting)
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "none" && site != "same-origin" {
			return ErrOrigin.Because("a page of another origin caused the request (Sec-Fetch-Site)")
		}
	}
	return nil
}

// knowsHost reports whether a Host header, with or without port, names the listener.
func (g Guard) knowsHost(host string) bool {
	name, ok := hostname(host)
	if !ok {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") ||
		slices.ContainsFunc(g.Hosts, func(known string) bool { return strings.EqualFold(known, name) })
}

// reachesLoopback reports whether name is an address that reaches a listener on loopback, and is
// none of the addresses that all browsers count as loopback.
func reachesLoopback(name string) bool {
	address, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	plain := address.Unmap().WithZone("")
	return plain.IsUnspecified() || address.Is4In6() && plain.IsLoopback()
}

// hostname removes the port, the brackets of IPv6 and the trailing dot from a Host header, and
// lowers its letters. ok is false if host is not a valid host.
func hostname(host string) (name string, ok bool) {
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		address, rest, closed := strings.Cut(inner, "]")
		_, err := netip.ParseAddr(address)
		return address, closed && err == nil && strings.Contains(address, ":") && (rest == "" || isPort(rest))
	}
	if colon := strings.IndexByte(host, ':'); colon >= 0 {
		if !isPort(host[colon:]) {
			return "", false
		}
		host = host[:colon]
	}
	name = strings.TrimSuffix(strings.ToLower(host), ".")
	return name, name != "" && !strings.HasPrefix(name, ".")
}

// isPort reports whether s is a colon and at most five digits.
func isPort(s string) bool {
	digits := s[1:]
	return s[0] == ':' && len(digits) <= 5 && strings.Trim(digits, "0123456789") == ""
}

// ownOrigin is the origin of the pages that this listener serves, as browsers write it.
func ownOrigin(r *http.Request) string {
	scheme, standard := "http", "80"
	if r.TLS != nil {
		scheme, standard = "https", "443"
	}
	host := strings.ToLower(r.Host)
	if name, port, err := net.SplitHostPort(host); err == nil && (port == standard || port == "") {
		if host = name; strings.Contains(name, ":") {
			host = "[" + name + "]"
		}
	}
	return scheme + "://" + host
}

// Preflighted reports whether a browser asks the service first (a CORS preflight) before
// a page can send a request with this method and these headers: with a JSON body's
// Content-Type, an API key, a signature or an idempotency key, and with every method but
// GET, HEAD and POST.
func Preflighted(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		return true
	}
	if kinds := r.Header["Content-Type"]; len(kinds) == 1 {
		if kind, _, err := mime.ParseMediaType(kinds[0]); err == nil && kind == "application/json" {
			return true
		}
	}
	return len(r.Header["X-Api-Key"])+len(r.Header["Idempotency-Key"]) > 0 ||
		slices.ContainsFunc(r.Header["Authorization"], setByScripts)
}

// setByScripts reports whether only a script can set an Authorization header of this scheme.
// Browsers answer other schemes by themselves, with a stored password or a ticket.
func setByScripts(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Signature")
}

// Handler answers 403, as plain text, to requests that the guard refuses, and 415 to a POST
// that a page could send without a CORS preflight. It passes all others to next.
func (g Guard) Handler(next http.Handler) http.Handler {
	refuse := func(w http.ResponseWriter, status int, text string) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		io.WriteString(w, text) //nolint:errcheck // the client has gone
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch err := g.Check(r); {
		case err != nil:
			refuse(w, http.StatusForbidden, err.Error())
		case r.Method == http.MethodPost && !Preflighted(r):
			refuse(w, http.StatusUnsupportedMediaType, "a POST needs Content-Type: application/json")
		default:
			next.ServeHTTP(w, r)
		}
	})
}
