package rest

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwardedMax is the most addresses of X-Forwarded-For that are read.
const forwardedMax = 16

// clientAddress returns the address that a request is charged to: the connection's address,
// unless that is a trusted proxy. Then it is the last address in X-Forwarded-For that is not a
// trusted proxy, since clients can forge the addresses before it. IPv6 addresses are cut to
// their /64, because one subscriber has all of it.
func clientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // not a TCP connection: all of these share one client
	}
	address := peer.Addr().Unmap().WithZone("")
	if len(trusted) > 0 && isAmong(address, trusted) {
		address = forwardedFor(r.Header["X-Forwarded-For"], trusted, address)
	}
	return subscriber(address)
}

// subscriber cuts an IPv6 address to its /64 network.
func subscriber(address netip.Addr) netip.Addr {
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return address
}

// forwardedFor walks from the nearest proxy outwards. If it finds no address, or only trusted
// ones, it returns the outermost trusted one.
func forwardedFor(headers []string, trusted []netip.Prefix, nearest netip.Addr) netip.Addr {
	seen := 0
	for _, header := range slices.Backward(headers) {
		for rest := header; ; {
			comma := strings.LastIndexByte(rest, ',')
			address, ok := parseForwarded(strings.Trim(rest[comma+1:], " \t"))
			seen++
			switch {
			case !ok || seen > forwardedMax:
				return nearest
			case !isAmong(address, trusted):
				return address
			}
			nearest = address
			if comma < 0 {
				break
			}
			rest = rest[:comma]
		}
	}
	return nearest
}

// parseForwarded parses an address; some proxies add the port.
func parseForwarded(text string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		address = withPort.Addr()
	}
	return address.Unmap().WithZone(""), true
}

func isAmong(address netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(address) })
}
