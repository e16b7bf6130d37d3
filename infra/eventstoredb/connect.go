package eventstoredb

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// prefixParam is the one parameter of the URL that is ours and not the client's.
const prefixParam = "streamprefix"

// params are the parameters that a URL may have, in lower case. The client ignores unknown
// parameters, and accepts maxdiscoverattempts, which the supervisor sets.
var params = []string{
	prefixParam, "discoveryinterval", "gossiptimeout", "keepaliveinterval", "keepalivetimeout",
	"tls", "tlscafile", "tlsverifycert", "usercertfile", "userkeyfile", "defaultdeadline", "nodepreference",
}

// parse reads an esdb:// or esdb+discover:// URL. Its errors do not show the text, which
// may hold a password: the client's own would.
func parse(text string) (config *esdb.Configuration, prefix string, err error) {
	address, query, _ := strings.Cut(text, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, "", errors.New("the URL's parameters cannot be read")
	}
	for name, value := range values {
		switch key := strings.ToLower(name); {
		case !slices.Contains(params, key):
			return nil, "", fmt.Errorf("the URL has an unknown parameter %q; allowed are %s", name, strings.Join(params, ", "))
		case len(value) > 1:
			return nil, "", fmt.Errorf("the URL has %s twice", name)
		case key == "nodepreference" && !strings.EqualFold(value[0], "leader"):
			return nil, "", errors.New("nodePreference must be leader: a follower may lack the newest events")
		case key == prefixParam:
			prefix = value[0]
			values.Del(name)
		default:
			if err := parameter(name, value[0]); err != nil {
				return nil, "", err
			}
		}
	}
	if strings.HasPrefix(prefix, "$") || !storable(prefix) {
		return nil, "", fmt.Errorf("streamPrefix %q is not a valid prefix of a stream name", prefix)
	}
	config, err = esdb.ParseConnectionString(address + "?" + values.Encode())
	if err != nil {
		return nil, "", errors.New("is not an esdb:// URL with a host (special characters of a password must be percent-encoded)")
	}
	return config, prefix, nil
}

// parameter parses one parameter alone, so that its error can name it.
func parameter(name, value string) error {
	one := url.Values{name: {value}}
	_, err := esdb.ParseConnectionString("esdb://host?" + one.Encode())
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return fmt.Errorf("%s: %w", name, file)
	case err != nil:
		return fmt.Errorf("the URL's %s is invalid", name)
	}
	return nil
}
