package webhook

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

func guard(t *testing.T, r Rules) *Guard {
	t.Helper()
	g, err := NewGuard(r)
	must(t, err)
	return g
}

// noLookup fails a test that looks up a name.
func noLookup(t *testing.T) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, name string) ([]netip.Addr, error) {
		t.Errorf("%s was looked up", name)
		return nil, errors.New("no lookup")
	}
}

func TestCheck(t *testing.T) {
	g := guard(t, Rules{Lookup: noLookup(t)})
	for _, good := range []string{
		"https://example.org", "https://EXAMPLE.org/a?b=c", "https://example.org:443/", "https://xn--bcher-kva.example/",
		"https://8.8.8.8/", "https://[2606:4700:4700::1111]/", "https://1and1.example.com/", "HTTPS://example.org",
	} {
		if err := g.Check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		// This machine and its neighbours, as names and as numbers.
		"https://127.0.0.1/", "https://localhost/", "https://a.localhost/", "https://LOCALHOST", "https://[::1]/", "https://0.0.0.0/", "https://[::]/",
		"https://[::ffff:127.0.0.1]/", "https://[::ffff:8.8.8.8]/", "https://ⓛocalhost/", "https://%E2%93%9Bocalhost/",
		"https://10.1.2.3/", "https://172.16.0.1/", "https://192.168.1.1/", "https://100.64.0.1/", "https://169.254.169.254/",
		"https://[fd00:ec2::254]/", "https://[64:ff9b::7f00:1]/", "https://[fe80::1%25eth0]/", "https://224.0.0.1/", "https://255.255.255.255/",
		"https://[2002:7f00:1::]/", "https://[2001:0:7f00:1::]/", "https://[::7f00:1]/", "https://[ff02::1]/", "https://168.63.129.16/",
		// Forms that some resolvers read as an address.
		"https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://example.0x7f/", "https://127.0.0.1./",
		// Other schemes, ports and parts.
		"http://example.org/", "gopher://example.org/", "file:///etc/passwd", "ftp://example.org/", "javascript:alert(1)", "//example.org/", "example.org", "",
		"https://example.org:80/", "https://example.org:22/", "https://example.org:0/", "https://example.org:/", "https://example.org:65979/", "https://example.org:0443/",
		"https://example.org/#a", "https://example.org/#", "https://user@example.org/", "https://user:password@example.org/", "https://user@127.0.0.1/", "https://@example.org/",
		"https:///path", "https:example.org", "https://example..org/", "https://-a.org/", "https://a_b.org/", "https://example.org./", "https://intranet/",
		"https://exam ple.org/", "https://example.org\t/", "https://example.org\r\nX: y/", "https://" + strings.Repeat("a", 64) + ".org/",
		"https://" + strings.Repeat("a.", 130) + "org/", "https://example.org/" + strings.Repeat("a", URLMax), "https://[::1", "https://a:b:c/",
	} {
		var why *refused
		if err := g.Check(bad); !errors.As(err, &why) || why.cause != notice.Forbidden {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestCheckUnderRules(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for _, c := range []struct {
		rules     Rules
		good, bad []string
	}{
		{
			Rules{Development: true},
			[]string{"http://127.0.0.1:8080/", "http://localhost:1/", "http://[::1]:99/", "https://localhost/", "https://example.org/"},
			[]string{"http://example.org/", "http://10.0.0.1/", "https://example.org:8443/", "http://0.0.0.0/", "ftp://localhost/", "http://[::ffff:127.0.0.1]/"},
		},
		{
			Rules{Ports: []uint16{443, 8443}},
			[]string{"https://example.org:8443/", "https://example.org/"}, []string{"https://example.org:8080/"},
		},
		{Rules{Ports: []uint16{8443}}, []string{"https://example.org:8443/"}, []string{"https://example.org/"}},
		{
			Rules{Hosts: []string{"Hooks.example.org", ".example.com", "sink", "8.8.8.8"}},
			[]string{"https://hooks.example.org/", "https://HOOKS.example.org/", "https://a.b.example.com/", "https://sink/", "https://8.8.8.8/"},
			[]string{"https://example.org/", "https://a.hooks.example.org/", "https://example.com/", "https://badexample.com/", "https://8.8.4.4/"},
		},
		{
			Rules{Networks: networks},
			[]string{"https://10.0.0.1/", "https://192.168.0.1/", "https://[fd12::1]/"},
			[]string{"https://169.254.169.254/", "https://0.0.0.0/", "https://[::]/", "https://[fe80::1]/", "https://[fd00:ec2::254]/", "https://224.0.0.1/", "http://10.0.0.1/", "https://[::ffff:10.0.0.1]/"},
		},
	} {
		c.rules.Lookup = noLookup(t)
		g := guard(t, c.rules)
		for _, good := range c.good {
			if err := g.Check(good); err != nil {
				t.Errorf("%+v: %s: %v", c.rules.Hosts, good, err)
			}
		}
		for _, bad := range c.bad {
			if g.Check(bad) == nil {
				t.Errorf("%+v: %s may be called", c.rules.Hosts, bad)
			}
		}
	}
}

func TestNewGuardRefuses(t *testing.T) {
	for what, r := range map[string]Rules{
		"port 0":            {Ports: []uint16{0}},
		"too many ports":    {Ports: make([]uint16, PortsMax+1)},
		"an empty host":     {Hosts: []string{""}},
		"a dot":             {Hosts: []string{"."}},
		"a URL for a host":  {Hosts: []string{"https://example.org"}},
		"a network's host":  {Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}},
		"no network":        {Networks: []netip.Prefix{{}}},
		"too many networks": {Networks: make([]netip.Prefix, NetworksMax+1)},
	} {
		if _, err := NewGuard(r); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// One refused address makes the whole name refused.
func TestCheckNow(t *testing.T) {
	for _, c := range []struct {
		found []string
		cause notice.Cause
	}{
		{[]string{"8.8.8.8"}, ""},
		{[]string{"::ffff:8.8.8.8", "2606:4700:4700::1111"}, ""}, // an IPv4-mapped form that a resolver may return
		{[]string{"::ffff:127.0.0.1"}, notice.Forbidden},
		{[]string{"8.8.8.8", "10.0.0.1"}, notice.Forbidden},
		{[]string{"8.8.8.8", "8.8.4.4", "1.1.1.1", "9.9.9.9", "169.254.169.254"}, notice.Forbidden},
		{[]string{"fe80::1%eth0"}, notice.Forbidden},
		{nil, notice.Name},
	} {
		asked := ""
		g := guard(t, Rules{Lookup: func(ctx context.Context, name string) ([]netip.Addr, error) {
			asked = name
			return at(c.found...)(ctx, name)
		}})
		err := g.CheckNow(t.Context(), "https://example.org/secret")
		var why *refused
		if (err == nil) != (c.cause == "") || err != nil && (!errors.As(err, &why) || why.cause != c.cause) {
			t.Errorf("%v: %v, want %q", c.found, err, c.cause)
		}
		if asked != "example.org." {
			t.Errorf("%q was looked up", asked)
		}
	}
}

func TestErrorsQuoteNoSecret(t *testing.T) {
	g := guard(t, Rules{})
	for _, url := range []string{"https://canary:canary@example.org/canary?canary#canary", "http://example.org/canary?canary", "https://example.org:99/canary", "https://exa mple.org/canary", "https://127.0.0.1/canary"} {
		if err := g.Check(url); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v", err)
		}
	}
}

func TestPublic(t *testing.T) {
	for a, want := range map[string]bool{
		"8.8.8.8": true, "100.63.255.255": true, "100.128.0.0": true, "172.15.255.255": true, "172.32.0.1": true, "223.255.255.255": true,
		"2606:4700::1": true, "2a00::1": true, "2003::1": true,
		"0.1.2.3": false, "10.255.255.255": false, "100.127.255.255": false, "127.255.255.255": false, "169.254.0.1": false,
		"172.31.255.255": false, "192.0.0.192": false, "192.0.2.1": false, "192.88.99.1": false, "198.19.0.1": false, "198.51.100.1": false,
		"203.0.113.1": false, "224.0.0.1": false, "240.0.0.1": false, "::1": false, "64:ff9b::808:808": false, "64:ff9b:1::1": false,
		"100::1": false, "2001:1::1": false, "2001:db8::1": false, "2002:808:808::1": false, "3fff::1": false, "5f00::1": false,
		"fc00::1": false, "fd00::1": false, "fe80::1": false, "fec0::1": false, "ff02::1": false, "::808:808": false,
	} {
		if got := public(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: public %v", a, got)
		}
	}
}
