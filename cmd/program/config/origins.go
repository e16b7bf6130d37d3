package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const (
	originsMax = 256
	anyOrigin  = "*"
)

// origins is a setting whose value is a list of web origins, or all of them.
func origins(path string, value *[]string, doc string) *setting {
	return &setting{
		path: path, kind: text, absent: "none", allowed: "`https://app.example,http://localhost:3000`, or `*` for all", doc: doc,
		show: func() string { return strings.Join(*value, ",") },
		read: func(text string) error {
			all := strings.Split(text, ",")
			if len(all) > originsMax {
				return fmt.Errorf("has %d origins, more than %d", len(all), originsMax)
			}
			for _, origin := range all {
				if err := checkOrigin(origin); err != nil && text != anyOrigin {
					return err
				}
			}
			if slices.Contains(all, anyOrigin) && len(all) > 1 {
				return errors.New("has * beside others")
			}
			*value = all
			return nil
		},
	}
}

const hostsMax = 256

// hosts is a setting whose value is a list of host names.
func hosts(path string, value *[]string, doc string) *setting {
	return &setting{
		path: path, kind: text, absent: "none", allowed: "`watchtower,watchtower.prod.svc`", doc: doc,
		show: func() string { return strings.Join(*value, ",") },
		read: func(text string) error {
			all := strings.Split(strings.ToLower(text), ",")
			if len(all) > hostsMax {
				return fmt.Errorf("has %d names, more than %d", len(all), hostsMax)
			}
			for i, name := range all {
				all[i] = strings.TrimSuffix(name, ".")
				if err := checkHost(all[i]); err != nil {
					return err
				}
			}
			*value = all
			return nil
		},
	}
}

// checkHost refuses text that is not a host name (RFC 1123, section 2.1, plus the underscore of
// container names).
func checkHost(name string) error {
	_, err := netip.ParseAddr(name)
	switch {
	case err == nil:
		return errors.New("holds an IP address: those are answered without being listed")
	case strings.Contains(name, "*"):
		return errors.New("holds *: a name is given whole")
	case len(name) > 253 || slices.ContainsFunc(strings.Split(name, "."), func(label string) bool {
		return label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" ||
			strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-")
	}):
		return errors.New("holds something that is no host name, such as watchtower or api.example.com; ports and schemes are left out")
	}
	return nil
}

// checkOrigin refuses text that a browser never sends as an origin. A browser sends the scheme,
// the host and, unless it is the scheme's default, the port, in lower case (RFC 6454, section
// 6.2).
func checkOrigin(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Hostname() == "" || text != u.Scheme+"://"+u.Host || text != strings.ToLower(text) {
		return errors.New("holds something that is no origin, such as https://app.example or http://localhost:3000")
	}
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		return fmt.Errorf("names the port that %s has anyway, which browsers leave out", u.Scheme)
	}
	return nil
}
