package chain

import (
	"errors"
	"fmt"
	"strings"
)

// eip155 is the namespace of CAIP-2 for chains that have an EIP-155 number.
const eip155 = "eip155"

// Reference is a chain's name by CAIP-2, such as eip155:1 or near:testnet. A namespace decides the
// form of its chains' accounts and hashes.
type Reference struct{ Namespace, Name string }

// ErrNoNumber means that a reference is well formed, and names a chain that has no EIP-155 number. No
// such chain is supported.
var ErrNoNumber = errors.New("the chain has no EIP-155 number")

// String returns the form of CAIP-2.
func (r Reference) String() string { return r.Namespace + ":" + r.Name }

// Reference is the chain's name by CAIP-2.
func (id ID) Reference() Reference { return Reference{eip155, id.String()} }

// ID returns the chain's number; [ErrNoNumber] if chains of the namespace have none.
func (r Reference) ID() (ID, error) {
	if r.Namespace != eip155 {
		return 0, fmt.Errorf("chain %s: %w", r, ErrNoNumber)
	}
	return ParseID(r.Name)
}

// ParseReference parses a chain's name by CAIP-2: a namespace of 3 to 8 of a-z, 0-9 and -, a colon,
// and a name of 1 to 32 of A-Z, a-z, 0-9, - and _.
func ParseReference(s string) (Reference, error) {
	const small = "abcdefghijklmnopqrstuvwxyz0123456789-"
	const large = small + "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	space, name, found := strings.Cut(s, ":")
	if !found || len(space) < 3 || len(space) > 8 || strings.Trim(space, small) != "" || name == "" || len(name) > 32 || strings.Trim(name, large) != "" {
		return Reference{}, fmt.Errorf("%.80q is not a chain's name by CAIP-2, such as eip155:1", s)
	}
	return Reference{space, name}, nil
}

// ParseNamed parses a chain as clients name it: by its number in decimal, or by CAIP-2.
func ParseNamed(s string) (ID, error) {
	if !strings.Contains(s, ":") {
		return ParseID(s)
	}
	r, err := ParseReference(s)
	if err != nil {
		return 0, err
	}
	return r.ID()
}
