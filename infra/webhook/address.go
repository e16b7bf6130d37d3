package webhook

import (
	"net/netip"
	"slices"
)

// inside are networks outside the public Internet. Source: IANA's special-purpose address
// registries for IPv4 and IPv6.
var inside = []netip.Prefix{ //nolint:gochecknoglobals // a table
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("2001::/23"), // including Teredo, which carries IPv4 addresses
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4 carries IPv4 addresses
	netip.MustParsePrefix("3fff::/20"),
}

// unicast is the part of IPv6 allocated to the public Internet. NAT64, IPv4 in IPv6, unique
// local addresses and the loopback are outside of it.
var unicast = netip.MustParsePrefix("2000::/3") //nolint:gochecknoglobals // a constant

// public reports whether an address is of the public Internet.
func public(a netip.Addr) bool {
	if a.Is6() && !unicast.Contains(a) {
		return false
	}
	return !neverCalled(a) && !contains(inside, a)
}

// allows reports whether a connection to an address is allowed. The address has no zone and is
// not IPv4-mapped.
func (g *Guard) allows(a netip.Addr) bool {
	switch {
	case !a.IsValid() || a.Zone() != "" || a.Is4In6() || neverCalled(a):
		return false
	case g.rules.Development && a.IsLoopback():
		return true
	}
	return public(a) || contains(g.rules.Networks, a)
}

func contains(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}
