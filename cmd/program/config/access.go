package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Rate limits the requests per second of one client; PerSecond 0 is no limit.
type Rate struct {
	PerSecond, Burst int
}

// Rates are the limits on clients.
type Rates struct {
	Address        Rate
	Key            Rate
	Clients        int
	TrustedProxies []netip.Prefix
}

// Idempotency configures how long requests are remembered by their Idempotency-Key.
type Idempotency struct {
	Keep        time.Duration
	MaxRequests int
}

// AddressRate is the default limit, in requests per second per address, where strangers can
// reach the API.
const AddressRate = 200

func (d *draft) limits() []*setting {
	const rateMax, burstMax = 1_000_000, 10_000_000
	r := &d.Rates
	perAddress := numbers("rate.address", &r.Address.PerSecond, 0, 0, rateMax,
		"How many requests per second one address may send on average; 0 is no limit. "+
			"A batch counts as its transactions; `/livez` and `/readyz` do not count. Each replica allows this rate.")
	perAddress.standard = ""
	perAddress.absent = fmt.Sprintf("%d, or no limit while `listen` is a loopback address and there are no `trusted-proxies`", AddressRate)
	return []*setting{
		perAddress,
		numbers("rate.address-burst", &r.Address.Burst, 2000, 1, burstMax,
			"How many requests one address may send at once: at least `api.max-batch`."),
		numbers("rate.key", &r.Key.PerSecond, 1000, 0, rateMax,
			"How many requests per second the holder of an API key may send on average, unless the key has its own rate; 0 is no limit. A batch counts as its transactions. Each replica allows this rate."),
		numbers("rate.key-burst", &r.Key.Burst, 10_000, 1, burstMax,
			"How many requests the holder of an API key may send at once: at least `api.max-batch`."),
		numbers("rate.clients", &r.Clients, 65_536, 1024, 1<<24,
			"How many clients are remembered for rate limits, at about 200 bytes each. Beyond that, the least recently seen client is forgotten."),
		durations("idempotency.keep", &d.Idempotency.Keep, 24*time.Hour, time.Second, 7*24*time.Hour,
			"How long a request with an `Idempotency-Key` is remembered. Until then a repeated request gets the same response."),
		numbers("idempotency.max-requests", &d.Idempotency.MaxRequests, 100_000, 1000, 10_000_000,
			"How many requests with an `Idempotency-Key` are remembered, at up to 64 KiB each; beyond that the oldest are forgotten. A forgotten request is carried out again when it is repeated; no transaction is accepted twice."),
		networks("trusted-proxies", &r.TrustedProxies,
			"The proxies whose `X-Forwarded-For` is trusted. The client is the last address in it that is not a trusted proxy. "+
				"For a request from any other address, the client is the sender's address."),
	}
}

// IsLoopback reports whether only this machine can reach host:port.
func IsLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

const networksMax = 256

// networks is a setting whose value is a list of networks or addresses.
func networks(path string, value *[]netip.Prefix, doc string) *setting {
	shown := func() string {
		texts := make([]string, len(*value))
		for i, p := range *value {
			texts[i] = p.String()
		}
		return strings.Join(texts, ",")
	}
	return &setting{
		path: path, kind: text, absent: "none", allowed: "`10.0.0.0/8,192.168.1.7`", doc: doc,
		show: shown,
		read: func(text string) error {
			var networks []netip.Prefix
			for part := range strings.SplitSeq(text, ",") {
				network, err := parseNetwork(part)
				if err != nil {
					return err
				}
				networks = append(networks, network)
			}
			if len(networks) > networksMax {
				return fmt.Errorf("has %d networks, more than %d", len(networks), networksMax)
			}
			*value = networks
			return nil
		},
	}
}

func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%s is neither an address nor a network such as 10.0.0.0/8", quote(text))
	case network != network.Masked():
		return netip.Prefix{}, fmt.Errorf("%s has bits beyond its length; the network is %s", network, network.Masked())
	}
	return network, nil
}
