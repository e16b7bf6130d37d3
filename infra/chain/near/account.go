package near

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Bounds of an account's name in bytes (near-account-id-rs, src/validation.rs).
const (
	accountShortest = 2
	accountLongest  = 64
)

// CheckAccount returns an error if the name is no account of NEAR: 2 to 64 bytes of a-z and 0-9, with
// single '-', '_' and '.' between them. The error's text is the node's.
func CheckAccount(name string) error {
	switch {
	case len(name) < accountShortest:
		return accountError(name, "the Account ID is too short")
	case len(name) > accountLongest:
		return accountError(name, "the Account ID is too long")
	}
	separated := true // whether the byte before is a separator, or there is none
	for at := range len(name) {
		switch c := name[at]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			separated = false
		case c == '-', c == '_', c == '.':
			if separated {
				return redundantSeparator(name, at)
			}
			separated = true
		default:
			char, _ := utf8.DecodeRuneInString(name[at:])
			return accountError(name, fmt.Sprintf("the Account ID contains an invalid character %s at index %d", strconv.QuoteRune(char), at))
		}
	}
	if separated {
		return redundantSeparator(name, len(name)-1)
	}
	return nil
}

func redundantSeparator(name string, at int) error {
	return accountError(name, fmt.Sprintf("the Account ID has a redundant separator '%c' at index %d", name[at], at))
}

func accountError(name, text string) error {
	return &DecodeError{Text: fmt.Sprintf("invalid value: %s, %s", strconv.Quote(name), text)}
}

// account reads an account's name.
func (r *reader) account() string {
	name := r.text()
	if r.err == nil {
		r.err = CheckAccount(name)
	}
	return name
}
