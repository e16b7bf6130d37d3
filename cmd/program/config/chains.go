package config

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Chain is one configured chain.
type Chain struct {
	ID        chain.ID
	Name      string     // for display; the chain id if none was given
	Endpoints []Endpoint // at least one, no two with the same URL
	// Confirmations is the depth at which a block is final, the including block counted. 0
	// trusts the node's finalized tag instead.
	Confirmations uint64
	// Own are the chain entry's values for settings that otherwise apply to all chains, in file
	// order.
	Own []Own
}

// Own is a chain's own value of a setting that allows it ([Row.PerChain]).
type Own struct {
	Path   string // of the setting
	Value  string // as written in the file; valid by itself
	Origin string // file:line
}

// Endpoint is one node of a chain.
type Endpoint struct {
	Name      string // for display; may be empty
	URL       Secret // http or https
	WebSocket Secret // ws or wss; may be absent
	Budget    BudgetPart
}

const (
	chainsMax        = 64
	endpointsMax     = 32
	confirmationsMax = 10_000
	// Databases keep chain ids in signed 64-bit columns.
	chainIDMax = math.MaxInt64
)

// parseChains reads id=url,url;id=url. Its errors do not show URLs.
func parseChains(text string) ([]Chain, error) {
	var chains []Chain
	for i, part := range strings.Split(text, ";") {
		id, urls, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("entry %d must be an id, =, and URLs: 42431=http://a,http://b", i+1)
		}
		c := Chain{}
		var err error
		if c.ID, err = parseChainID(strings.TrimSpace(id)); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		for _, u := range strings.Split(urls, ",") {
			c.Endpoints = append(c.Endpoints, Endpoint{URL: NewSecret(strings.TrimSpace(u))})
		}
		chains = append(chains, c)
	}
	var problems []error
	checkChains(chains, func(_ int, problem error) { problems = append(problems, problem) })
	return chains, errors.Join(problems...)
}

func parseChainID(text string) (chain.ID, error) {
	id, err := chain.ParseID(text)
	if err != nil || id > chainIDMax {
		return 0, fmt.Errorf("the chain id must be a decimal number from 1 to %d", int64(chainIDMax))
	}
	return id, nil
}

// checkChains reports every reason to refuse chains, each with the index of its chain. It also
// sets the name of each chain without one.
func checkChains(chains []Chain, refuse func(i int, problem error)) {
	if len(chains) > chainsMax {
		refuse(chainsMax, fmt.Errorf("%d chains are more than %d", len(chains), chainsMax))
		return
	}
	seen := map[chain.ID]bool{}
	for i := range chains {
		c := &chains[i]
		if seen[c.ID] {
			refuse(i, fmt.Errorf("chain %s is there twice", c.ID))
		}
		seen[c.ID] = true
		for _, problem := range c.check() {
			refuse(i, fmt.Errorf("chain %s: %w", c.ID, problem))
		}
		if c.Name == "" {
			c.Name = c.ID.String()
		}
	}
}

func (c Chain) check() (problems []error) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch n := len(c.Endpoints); {
	case n == 0:
		bad("no endpoint")
	case n > endpointsMax:
		bad("%d endpoints are more than %d", n, endpointsMax)
		return problems
	}
	if !isName(c.Name) {
		bad("the name %s", notName)
	}
	for i, e := range c.Endpoints {
		if err := checkURL(e.URL, "http", "https"); err != nil {
			bad("endpoint %d: %w", i+1, err)
		}
		if err := checkURL(e.WebSocket, "ws", "wss"); err != nil && !e.WebSocket.IsZero() {
			bad("endpoint %d: websocket %w", i+1, err)
		}
		if !isName(e.Name) {
			bad("endpoint %d: the name %s", i+1, notName)
		}
		// A duplicate node would get two votes where k of n have to agree.
		if first := slices.IndexFunc(c.Endpoints, e.same); first < i {
			bad("endpoint %d is endpoint %d again", i+1, first+1)
		}
	}
	return problems
}

func (e Endpoint) same(other Endpoint) bool {
	return e.URL.Equal(other.URL) || e.Name != "" && e.Name == other.Name
}

const (
	nameMax = 64
	notName = "must be at most 64 letters, digits, dots, hyphens and underscores"
)

// isName reports whether s is fit for logs and metric labels; the empty string is.
func isName(s string) bool {
	return len(s) <= nameMax && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("._-", r)
	})
}

// checkURL refuses anything but an absolute URL with a host and one of the schemes. The error
// does not show the URL.
func checkURL(s Secret, schemes ...string) error {
	u, err := url.Parse(s.Reveal())
	want := strings.Join(schemes, ":// or ") + "://"
	switch {
	case err != nil || !slices.Contains(schemes, u.Scheme):
		return fmt.Errorf("must be a URL that begins with %s", want)
	case u.Hostname() == "":
		return errors.New("has no host")
	case u.Fragment != "":
		return errors.New("has a fragment, which no server is sent")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("has no port from 1 to 65535")
		}
	}
	return nil
}

// parseConfirmations reads id=blocks;id=blocks.
func parseConfirmations(text string) (map[chain.ID]uint64, error) {
	blocks := map[chain.ID]uint64{}
	for i, part := range strings.Split(text, ";") {
		name, count, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("entry %d must be an id, =, and a number of blocks: 42431=0", i+1)
		}
		id, err := parseChainID(strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		if _, twice := blocks[id]; twice {
			return nil, fmt.Errorf("chain %s is there twice", id)
		}
		if blocks[id], err = parseBlocks(strings.TrimSpace(count)); err != nil {
			return nil, fmt.Errorf("chain %s: %w", id, err)
		}
	}
	return blocks, nil
}

func parseBlocks(text string) (uint64, error) {
	n, err := parseWhole(text)
	if err != nil || n < 0 || n > confirmationsMax {
		return 0, fmt.Errorf("confirmations must be a decimal number from 0 to %d", confirmationsMax)
	}
	return uint64(n), nil
}

// showChains is the text form, without the URLs' secrets.
func showChains(chains []Chain) string {
	parts := make([]string, len(chains))
	for i, c := range chains {
		urls := make([]string, len(c.Endpoints))
		for j, e := range c.Endpoints {
			urls[j] = e.URL.String()
		}
		parts[i] = c.ID.String() + "=" + strings.Join(urls, ",")
	}
	return strings.Join(parts, ";")
}

func showConfirmations(chains []Chain) string {
	parts := make([]string, len(chains))
	for i, c := range chains {
		parts[i] = fmt.Sprintf("%s=%d", c.ID, c.Confirmations)
	}
	return strings.Join(parts, ";")
}
