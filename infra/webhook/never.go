package webhook

import "net/netip"

// never lists the addresses that no setting opens: they stay refused even if webhooks.networks
// covers them. The clouds' addresses serve a machine's credentials, its configuration, or both,
// without authentication. The list has the published addresses. The link-local networks cover
// the addresses of the other clouds (169.254.169.254 of AWS, Google Cloud, Azure, Oracle,
// OpenStack, DigitalOcean, Hetzner, Vultr; 169.254.170.2 and .23 of AWS containers;
// 169.254.0.23 of Tencent; 169.254.42.42 of Scaleway; fe80::a9fe:a9fe of OpenStack and Akamai).
var never = []netip.Prefix{ //nolint:gochecknoglobals // a table
	thisNetwork,
	netip.MustParsePrefix("169.254.0.0/16"), // link-local: RFC 3927
	netip.MustParsePrefix("224.0.0.0/3"),    // multicast, reserved, broadcast: RFC 5771, RFC 1112 section 4, RFC 919
	netip.MustParsePrefix("::/128"),         // unspecified: RFC 4291 section 2.5.2
	netip.MustParsePrefix("fe80::/10"),      // link-local: RFC 4291 section 2.5.6
	netip.MustParsePrefix("fec0::/10"),      // site-local: RFC 3879
	netip.MustParsePrefix("ff00::/8"),       // multicast: RFC 4291 section 2.7

	netip.MustParsePrefix("100.100.100.200/32"),     // Alibaba Cloud ECS, "Instance metadata"
	netip.MustParsePrefix("fd00:100::100:200/128"),  // the same over IPv6
	netip.MustParsePrefix("168.63.129.16/32"),       // Azure, "What is IP address 168.63.129.16?": WireServer
	netip.MustParsePrefix("192.0.0.192/32"),         // Oracle Cloud Infrastructure Classic, "Retrieving instance metadata"
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), // Oracle Cloud Infrastructure, IPv6: oci-python-sdk, instance_principals_security_token_signer.py
	netip.MustParsePrefix("fd00:ec2::/32"),          // AWS: ::254 EC2 metadata, ::23 EKS pod identity
	netip.MustParsePrefix("fd20:ce::254/128"),       // Google Cloud, "About VM metadata": IPv6-only machines
	netip.MustParsePrefix("fd00:42::42/128"),        // Scaleway: cloud-init, datasource Scaleway
	netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"),  // Akamai (Linode): cloud-init, datasource Akamai
}

// thisNetwork is "this host on this network": RFC 1122 section 3.2.1.3.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8") //nolint:gochecknoglobals // a constant

// neverCalled reports whether an address, or an IPv4 address that it carries, is in [never].
func neverCalled(a netip.Addr) bool {
	if contains(never, a) {
		return true
	}
	for _, inner := range embedded(a) {
		// No translator uses this network: zeros there mean that the address has another form.
		if !thisNetwork.Contains(inner) && contains(never, inner) {
			return true
		}
	}
	return false
}

// carrier is an IPv6 prefix whose addresses carry an IPv4 address.
type carrier struct {
	prefix netip.Prefix
	octets [4]int // octets of the IPv4 address among the 16
	mask   byte   // XORed onto each octet
}

// carriers lists the IPv6 forms that a translator or a tunnel turns into IPv4.
var carriers = []carrier{ //nolint:gochecknoglobals // a table
	{prefix: netip.MustParsePrefix("::/96"), octets: [4]int{12, 13, 14, 15}},                 // IPv4-compatible: RFC 4291 section 2.5.5.1
	{prefix: netip.MustParsePrefix("::ffff:0:0/96"), octets: [4]int{12, 13, 14, 15}},         // IPv4-mapped: RFC 4291 section 2.5.5.2
	{prefix: netip.MustParsePrefix("::ffff:0:0:0/96"), octets: [4]int{12, 13, 14, 15}},       // IPv4-translated: RFC 2765 section 2.1
	{prefix: netip.MustParsePrefix("64:ff9b::/96"), octets: [4]int{12, 13, 14, 15}},          // NAT64: RFC 6052 section 2.1
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), octets: [4]int{6, 7, 9, 10}},           // local NAT64 (RFC 8215), RFC 6052 section 2.2, /48
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), octets: [4]int{7, 9, 10, 11}},          // the same, /56
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), octets: [4]int{9, 10, 11, 12}},         // the same, /64
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), octets: [4]int{12, 13, 14, 15}},        // the same, /96
	{prefix: netip.MustParsePrefix("2002::/16"), octets: [4]int{2, 3, 4, 5}},                 // 6to4: RFC 3056 section 2
	{prefix: netip.MustParsePrefix("2001::/32"), octets: [4]int{4, 5, 6, 7}},                 // Teredo, the server: RFC 4380 section 4
	{prefix: netip.MustParsePrefix("2001::/32"), octets: [4]int{12, 13, 14, 15}, mask: 0xff}, // Teredo, the client
}

// embedded returns the IPv4 addresses that an IPv6 address carries.
func embedded(a netip.Addr) (inner []netip.Addr) {
	if !a.Is6() {
		return nil
	}
	bytes := a.As16()
	add := func(octets [4]int, mask byte) {
		var v4 [4]byte
		for i, at := range octets {
			v4[i] = bytes[at] ^ mask
		}
		inner = append(inner, netip.AddrFrom4(v4))
	}
	for _, c := range carriers {
		if c.covers(a) {
			add(c.octets, c.mask)
		}
	}
	// ISATAP, under any prefix: RFC 5214 section 6.1.
	if bytes[8]&^0x02 == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe {
		add([4]int{12, 13, 14, 15}, 0)
	}
	return inner
}

// covers reports whether a's leading bits are the carrier's prefix. netip.Prefix.Contains
// is false for every IPv4-mapped address.
func (c carrier) covers(a netip.Addr) bool {
	p, err := a.Prefix(c.prefix.Bits())
	return err == nil && p.Addr() == c.prefix.Addr()
}
