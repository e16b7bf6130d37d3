package settings

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// signersMax limits lists of accounts, and poolsMax the list of pools.
const (
	signersMax = 1000
	poolsMax   = 100
)

// parseAddresses reads accounts. Its errors do not show invalid text: it may be a key.
func parseAddresses(text string) (all []chain.Address, err error) {
	for i, part := range strings.Split(text, ",") {
		a, err := chain.ParseAddress(strings.TrimSpace(part))
		switch {
		case err != nil:
			return nil, fmt.Errorf("entry %d is not an address: 0x and 40 hex digits", i+1)
		case slices.Contains(all, a):
			return nil, fmt.Errorf("%s is there twice", a)
		}
		all = append(all, a)
	}
	if len(all) > signersMax {
		return nil, fmt.Errorf("has %d addresses, more than %d", len(all), signersMax)
	}
	return all, nil
}

func joined[T fmt.Stringer](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return strings.Join(texts, ",")
}

func addresses(path string, value *[]chain.Address, doc string) config.Row {
	w := config.Words{Path: path, Absent: "none", Allowed: "`0x…,0x…`", Doc: doc}
	return config.TextRow(w, func(text string) (err error) {
		*value, err = parseAddresses(text)
		return err
	}, func() string { return joined(*value) })
}

func payer(path string, value **chain.Address, doc string) config.Row {
	w := config.Words{Path: path, Absent: "none: no intent is sponsored", Allowed: "`0x…`", Doc: doc}
	return config.TextRow(w, func(text string) error {
		a, err := chain.ParseAddress(text)
		if err != nil {
			return errors.New("is not an address: 0x and 40 hex digits")
		}
		*value = &a
		return nil
	}, func() string {
		if *value == nil {
			return ""
		}
		return (*value).String()
	})
}

// looksSecret reports whether a text is a private key rather than the path of one.
func looksSecret(text string) bool {
	digits := strings.TrimPrefix(text, "0x")
	return len(digits) == 64 && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}

func checkPath(text string) error {
	switch {
	case looksSecret(text):
		return errors.New("is a key, but must be a path")
	case strings.ContainsRune(text, 0):
		return errors.New("has a NUL")
	}
	return nil
}

func paths(path string, value *string, absent, doc string) config.Row {
	w := config.Words{Path: path, Absent: absent, Allowed: "a path", Doc: doc}
	return config.TextRow(w, func(text string) error {
		*value = text
		return checkPath(text)
	}, func() string { return *value })
}

// remoteURL is a setting whose value is shown up to its host only: the rest of the URL, or a
// user before the host, may be a misplaced secret.
func remoteURL(path string, value *string, doc string) config.Row {
	w := config.Words{Path: path, Absent: "none", Allowed: "`https://host:port`", Doc: doc}
	return config.TextRow(w, func(text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("is not an http or https URL without user, query and fragment")
		}
		*value = text
		return nil
	}, func() string { return config.NewSecret(*value).String() })
}

func lists(path string, value *[]string, doc string) config.Row {
	w := config.Words{Path: path, Absent: "none", Allowed: "`a.pem,b.pem`", Doc: doc}
	return config.TextRow(w, func(text string) error {
		*value = nil
		for part := range strings.SplitSeq(text, ",") {
			part = strings.TrimSpace(part)
			if part == "" {
				return errors.New("has an empty entry")
			}
			if err := checkPath(part); err != nil {
				return err
			}
			*value = append(*value, part)
		}
		return nil
	}, func() string { return strings.Join(*value, ",") })
}

func poolsRow(path string, value *Pools, doc string) config.Row {
	w := config.Words{Path: path, Absent: "none", Allowed: "`hot=0x…,0x…;cold=0x…`", Doc: doc}
	return config.TextRow(w, func(text string) error {
		pools, err := parsePools(text)
		*value = pools
		return err
	}, func() string {
		texts := make([]string, len(*value))
		for i, p := range *value {
			texts[i] = p.Name + "=" + joined(p.Signers)
		}
		return strings.Join(texts, ";")
	})
}

func parsePools(text string) (pools Pools, err error) {
	for i, part := range strings.Split(text, ";") {
		name, signers, ok := strings.Cut(part, "=")
		p := Pool{Name: strings.TrimSpace(name)}
		switch {
		case !ok:
			return nil, fmt.Errorf("entry %d must be a name, =, and addresses: hot=0x…,0x…", i+1)
		case p.Name == "" || len(p.Name) > intent.NameMax || strings.Trim(p.Name, nameLetters) != "":
			return nil, fmt.Errorf("entry %d: a pool's name is 1 to %d of A-Z, a-z, 0-9 and ._:-", i+1, intent.NameMax)
		case pools.Named(p.Name) != nil:
			return nil, fmt.Errorf("entry %d: pool %s is there twice", i+1, p.Name)
		}
		if p.Signers, err = parseAddresses(signers); err != nil {
			return nil, fmt.Errorf("pool %s: %w", p.Name, err)
		}
		pools = append(pools, p)
	}
	if len(pools) > poolsMax {
		return nil, fmt.Errorf("has %d pools, more than %d", len(pools), poolsMax)
	}
	return pools, nil
}

// nameLetters are the characters allowed in an intent's pool.
const nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"

func formats(path string, value *Formats, doc string) config.Row {
	w := config.Words{
		Path: path, Absent: "`tempo` for Tempo's networks (4217, 42431), `ethereum` for others", Allowed: "`31337=tempo;56=legacy`", Doc: doc,
	}
	return config.TextRow(w, func(text string) error {
		all := Formats{}
		for i, part := range strings.Split(text, ";") {
			name, word, ok := strings.Cut(part, "=")
			id, err := chain.ParseID(strings.TrimSpace(name))
			format := Format(strings.TrimSpace(word))
			if !ok || err != nil || format != Tempo && format != DynamicFee && format != Legacy {
				return fmt.Errorf("entry %d must be a chain's id, =, and tempo, ethereum or legacy", i+1)
			}
			if all[id] != "" {
				return fmt.Errorf("chain %s is there twice", id)
			}
			all[id] = format
		}
		*value = all
		return nil
	}, func() string {
		var texts []string
		for id, format := range *value {
			texts = append(texts, fmt.Sprintf("%s=%s", id, format))
		}
		slices.Sort(texts)
		return strings.Join(texts, ";")
	})
}
