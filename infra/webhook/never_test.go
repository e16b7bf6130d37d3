package webhook

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

// everywhere is a webhooks.networks that covers every address.
func everywhere() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"),
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("fc00::/7"),
		netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"),
	}
}

// Attack 14: an operator opens a network for their own receivers, and a client registers a
// webhook there that leads to the cloud's credentials.
func TestWebhookNeverReachesCloudCredentials(t *testing.T) {
	g := guard(t, Rules{Networks: everywhere(), Lookup: noLookup(t)})
	v4 := []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "169.254.42.42",
		"100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1", "240.0.0.1", "255.255.255.255",
	}
	v6 := []string{
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:100::100:200", "fd00:42::42", "fd00:a9fe:a9fe::1",
		"fe80::a9fe:a9fe", "fec0::1", "ff02::1", "::",
	}
	var refused []netip.Addr
	for _, text := range v4 {
		a := netip.MustParseAddr(text)
		refused = append(append(refused, a), carrying(a)...)
	}
	for _, text := range v6 {
		refused = append(refused, netip.MustParseAddr(text))
	}
	for _, a := range refused {
		if g.allows(a) {
			t.Errorf("%s may be called", a)
		}
		if err := g.Check("https://" + netip.AddrPortFrom(a, 443).String() + "/"); err == nil {
			t.Errorf("a webhook to %s is accepted", a)
		}
	}

	neighbours := []string{
		"100.100.100.199", "168.63.129.17", "192.0.0.191", "10.0.0.1", "127.0.0.1",
		"fd20:ce::253", "fd00:42::43", "fd00:c1::1", "::1", "fd12::1",
		"64:ff9b::a00:1", "64:ff9b:1:a00:0:100::", "64:ff9b:1::a00:1", "2002:a00:1::1",
	}
	for _, text := range neighbours {
		if !g.allows(netip.MustParseAddr(text)) {
			t.Errorf("%s, a network's own, may not be called", text)
		}
	}
}

// carrying returns the IPv6 addresses that a translator or a tunnel converts to an IPv4
// address.
func carrying(a netip.Addr) (all []netip.Addr) {
	v4 := a.As4()
	at := func(prefix string, octets ...int) {
		bytes := netip.MustParseAddr(prefix).As16()
		for i, o := range octets {
			bytes[o] = v4[i]
		}
		all = append(all, netip.AddrFrom16(bytes))
	}
	for _, prefix := range []string{"::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::", "fd12::5efe:0:0", "fd12::200:5efe:0:0"} {
		at(prefix, 12, 13, 14, 15)
	}
	at("64:ff9b:1::", 6, 7, 9, 10)
	at("64:ff9b:1::", 7, 9, 10, 11)
	at("64:ff9b:1::", 9, 10, 11, 12)
	at("2002::1", 2, 3, 4, 5)
	at("2001:0:0:0:8000:ffff:f7f7:f7f7", 4, 5, 6, 7)
	binary.BigEndian.PutUint32(v4[:], ^binary.BigEndian.Uint32(v4[:]))
	at("2001:0:808:808:8000:ffff::", 12, 13, 14, 15)
	return all
}
