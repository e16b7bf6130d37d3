package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// Limits of a guard's rules and of its work.
const (
	URLMax       = 2048 // characters of an endpoint's URL
	PortsMax     = 16
	HostsMax     = 1000
	NetworksMax  = 100
	addressesMax = 4 // addresses tried per host
	lookupTime   = 5 * time.Second
	connectTime  = 5 * time.Second // for all addresses together
)

// Rules are an operator's settings for allowed URLs. The zero Rules allow https to port 443 of
// any host whose addresses are all public.
type Rules struct {
	// Development allows the loopback, by http and https and at any port.
	Development bool
	// Ports are the allowed ports; empty means 443.
	Ports []uint16
	// Hosts are the only allowed hosts, as whole names; ".example.org" means all names below
	// it. Empty means any host.
	Hosts []string
	// Networks are allowed although they are not public. Link-local, multicast and unspecified
	// addresses and cloud metadata stay refused.
	Networks []netip.Prefix
	// Lookup resolves a name; nil means the system's resolver. A name with dots is passed with
	// a trailing dot, so that no search list applies.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
}

// Guard decides which URLs may be called, and connects only to addresses that it has checked.
type Guard struct{ rules Rules }

// NewGuard checks the rules.
func NewGuard(r Rules) (*Guard, error) {
	if len(r.Ports) > PortsMax || len(r.Hosts) > HostsMax || len(r.Networks) > NetworksMax {
		return nil, fmt.Errorf("at most %d ports, %d hosts and %d networks can be listed", PortsMax, HostsMax, NetworksMax)
	}
	if len(r.Ports) == 0 {
		r.Ports = []uint16{443}
	}
	if slices.Contains(r.Ports, 0) {
		return nil, errors.New("port 0 cannot be called")
	}
	hosts := make([]string, len(r.Hosts))
	for i, host := range r.Hosts {
		hosts[i] = strings.ToLower(host)
		_, err := netip.ParseAddr(host)
		if !isName(strings.TrimPrefix(hosts[i], ".")) && err != nil {
			return nil, fmt.Errorf("host %q is neither a name nor an address", host)
		}
	}
	r.Hosts = hosts
	for _, p := range r.Networks {
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() {
			return nil, fmt.Errorf("network %s has bits behind its prefix, or is none", p)
		}
	}
	if r.Lookup == nil {
		r.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	return &Guard{r}, nil
}

// refused is the reason why the guard or the network prevented a connection.
type refused struct {
	cause notice.Cause
	text  string
	err   error // an error that may pass by itself; nil if it is the URL's fault
}

func (r *refused) Error() string { return r.text }
func (r *refused) Unwrap() error { return r.err }

func forbidden(format string, args ...any) error {
	return &refused{cause: notice.Forbidden, text: fmt.Sprintf(format, args...)}
}

// Check returns the reason why a URL may not be called, judging by the URL alone. The errors do
// not quote parts that may be secret: user, path and query.
func (g *Guard) Check(text string) error {
	_, err := g.parse(text)
	return err
}

// CheckNow is Check that also looks up the host's addresses. They may change until the URL is
// called: then they are checked again. A net.Error means that the lookup failed, and says
// nothing about the URL.
func (g *Guard) CheckNow(ctx context.Context, text string) error {
	u, err := g.parse(text)
	if err != nil {
		return err
	}
	_, err = g.addresses(ctx, u.Hostname())
	return err
}

func (g *Guard) parse(text string) (*url.URL, error) {
	if len(text) > URLMax {
		return nil, forbidden("the URL has %d characters, at most %d", len(text), URLMax)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, forbidden("not a URL") // the error quotes the URL
	case u.Opaque != "" || u.Host == "":
		return nil, forbidden("the URL has no host")
	case u.User != nil:
		return nil, forbidden("the URL has a user or a password")
	case strings.Contains(text, "#"):
		return nil, forbidden("the URL has a fragment")
	}
	host := strings.ToLower(u.Hostname())
	local := g.rules.Development && loopback(host)
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, forbidden("the URL's scheme is not https")
	}
	if err := g.checkPort(u, local); err != nil {
		return nil, err
	}
	return u, g.checkHost(host, local)
}

func (g *Guard) checkPort(u *url.URL, local bool) error {
	if strings.HasSuffix(u.Host, ":") {
		return forbidden("the URL's port is empty")
	}
	port := uint64(443)
	if text := u.Port(); text != "" {
		var err error
		if port, err = strconv.ParseUint(text, 10, 16); err != nil || port == 0 || text[0] == '0' {
			return forbidden("the URL's port is no number from 1 to 65535")
		}
	}
	if !local && !slices.Contains(g.rules.Ports, uint16(port)) {
		return forbidden("port %d may not be called", port)
	}
	return nil
}

func (g *Guard) checkHost(host string, local bool) error {
	listed := slices.ContainsFunc(g.rules.Hosts, func(rule string) bool {
		return host == rule || rule[0] == '.' && strings.HasSuffix(host, rule)
	})
	if !listed && !local && len(g.rules.Hosts) > 0 {
		return forbidden("the host is not allowed")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if !g.allows(a) {
			return forbidden("the host's address may not be called")
		}
		return nil
	}
	switch {
	case !isName(host):
		return forbidden("the host is neither a name nor an address")
	case local || listed:
		return nil
	case loopback(host) || !strings.Contains(host, "."):
		return forbidden("the host's name is not one of the public Internet")
	}
	return nil
}

// loopback reports whether a host's name means this machine. Source: RFC 6761 section 6.3.
func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// isName reports whether a host, in lower case, is a name and not an address for any resolver:
// some resolvers read 127.1, 0x7f000001 and 2130706433 as addresses. Sources: RFC 1123 section
// 2.1; the URL standard, "ends in a number".
func isName(host string) bool {
	const nameMax, labelMax = 253, 63
	if len(host) > nameMax {
		return false
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > labelMax || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }) {
			return false
		}
	}
	last := labels[len(labels)-1]
	return last[0] < '0' || last[0] > '9'
}

// addresses looks a host up, once. If one of its addresses is refused, the host is: a name with
// both public and inside addresses is suspicious.
func (g *Guard) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	found := make([]netip.Addr, 1)
	var err error
	if found[0], err = netip.ParseAddr(host); err != nil {
		ctx, cancel := context.WithTimeout(ctx, lookupTime)
		defer cancel()
		name := host
		if strings.Contains(host, ".") {
			name += "."
		}
		found, err = g.rules.Lookup(ctx, name)
		if dns := (*net.DNSError)(nil); errors.As(err, &dns) && !dns.IsNotFound {
			return nil, &refused{notice.Name, "the host's name cannot be looked up now", err}
		}
		if err != nil || len(found) == 0 {
			return nil, &refused{cause: notice.Name, text: "the host's name does not resolve"}
		}
		for i, a := range found {
			found[i] = a.Unmap() // resolvers may return an IPv4-mapped address
		}
	}
	for _, a := range found {
		if !g.allows(a) {
			return nil, forbidden("an address of the host may not be called")
		}
	}
	return found[:min(len(found), addressesMax)], nil
}

// dial connects to one of a host's addresses, which it looks up and checks here. Earlier
// lookups do not count.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, forbidden("not an address")
	}
	found, err := g.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: connectTime / time.Duration(len(found)), KeepAlive: -1}
	for _, a := range found {
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
	}
	return nil, &refused{cause: notice.Connect, text: "no connection"}
}
