package config

import (
	"strings"
	"testing"
)

// Clients are not limited while only this machine can reach the API. Strangers are, also through
// a proxy.
func TestAddressRateFollowsWhoCanReachUs(t *testing.T) {
	for _, tt := range []struct {
		env  []string
		want int
	}{
		{nil, 0},
		{[]string{"WATCHTOWER_LISTEN=localhost:8420"}, 0},
		{[]string{"WATCHTOWER_LISTEN=[::1]:8420"}, 0},
		{[]string{"WATCHTOWER_LISTEN=0.0.0.0:8420"}, AddressRate},
		{[]string{"WATCHTOWER_LISTEN=:8420"}, AddressRate},
		{[]string{"WATCHTOWER_LISTEN=[::]:8420"}, AddressRate},
		{[]string{"WATCHTOWER_LISTEN=example.org:8420"}, AddressRate},
		{[]string{"WATCHTOWER_TRUSTED_PROXIES=127.0.0.1"}, AddressRate},
		{[]string{"WATCHTOWER_LISTEN=0.0.0.0:8420", "WATCHTOWER_RATE_ADDRESS=0"}, 0},
		{[]string{"WATCHTOWER_RATE_ADDRESS=7"}, 7},
	} {
		if c, _ := (input{env: tt.env}).mustResolve(t); c.Rates.Address.PerSecond != tt.want {
			t.Errorf("%v: %d/s, want %d/s", tt.env, c.Rates.Address.PerSecond, tt.want)
		}
	}
}

// Strangers are let in only when the configuration says so.
func TestCheckAccess(t *testing.T) {
	for _, tt := range []struct {
		env  []string
		keys bool
		ok   bool
	}{
		{nil, false, true},
		{[]string{"WATCHTOWER_LISTEN=[::1]:1"}, false, true},
		{[]string{"WATCHTOWER_LISTEN=:1"}, false, false},
		{[]string{"WATCHTOWER_LISTEN=0.0.0.0:1"}, false, false},
		{[]string{"WATCHTOWER_LISTEN=192.0.2.1:1"}, false, false},
		{[]string{"WATCHTOWER_LISTEN=localhost.example:1"}, false, false},
		{[]string{"WATCHTOWER_LISTEN=0.0.0.0:1"}, true, true},
		{[]string{"WATCHTOWER_LISTEN=0.0.0.0:1", "WATCHTOWER_OPEN_ACCESS=true"}, false, true},
		// Web pages of all origins are strangers, too.
		{[]string{"WATCHTOWER_API_ORIGINS=https://app.example"}, false, true},
		{[]string{"WATCHTOWER_API_ORIGINS=*"}, false, false},
		{[]string{"WATCHTOWER_API_ORIGINS=*"}, true, true},
		{[]string{"WATCHTOWER_API_ORIGINS=*", "WATCHTOWER_OPEN_ACCESS=true"}, true, false},
		{[]string{"WATCHTOWER_API_ORIGINS=*", "WATCHTOWER_OPEN_ACCESS=true", "WATCHTOWER_LISTEN=:1"}, false, false},
	} {
		c, _ := input{env: tt.env}.mustResolve(t)
		if err := c.CheckAccess(tt.keys); (err == nil) != tt.ok {
			t.Errorf("%v, keys %v: %v", tt.env, tt.keys, err)
		}
	}
}

func TestHosts(t *testing.T) {
	for text, want := range map[string]string{
		"watchtower": "watchtower", "Api.Example.COM.": "api.example.com", "a,b_1.prod.svc": "a,b_1.prod.svc",
		"*": "", "*.example.com": "", ".example.com": "", "a..b": "", "127.0.0.1": "", "::1": "", "a:80": "", "http://a": "", "a b": "", "a,": "", "-a": "",
	} {
		c, _, err := input{env: []string{"WATCHTOWER_API_HOSTS=" + text}}.resolve(t)
		if got := strings.Join(c.API.Hosts, ","); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
