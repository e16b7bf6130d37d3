package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwardedMax bounds how many addresses of X-Forwarded-For are looked at.
const forwardedMax = 16

// clientAddress is whose request this is: the connection's address, unless that is
// a trusted proxy's. Then it is the last address in X-Forwarded-For that is none,
// for what stands before it may be invented. Addresses of IPv6 are cut to their
// /64, of which one subscriber has all.
func clientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // not a TCP connection: all share one
	}
	address := peer.Addr().Unmap().WithZone("")
	if len(trusted) > 0 && isAmong(address, trusted) {
		address = forwardedFor(r.Header["X-Forwarded-For"], trusted, address)
	}
	return subscriber(address)
}

// subscriber cuts an address of IPv6 to its network of 64 bits.
func subscriber(address netip.Addr) netip.Addr {
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return address
}

// forwardedFor walks from the nearest proxy outwards. Where it finds no address, or
// only trusted ones, the outermost trusted one is charged.
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

// parseForwarded reads an address, which some proxies write with its port.
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
