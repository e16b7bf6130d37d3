package keys

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The variables with private keys: a JSON array of them, or one key each, numbered from 0
// without gaps.
const (
	VariableOfAll = "RELAYER_PRIVATE_KEYS_JSON"
	VariableOfOne = "RELAYER_PRIVATE_KEY_"
)

// MaxKeys is the largest number of keys of one source.
const MaxKeys = 1000

// Environment returns a signer for each private key in an environment in the form of
// os.Environ: 64 hex digits, with or without 0x. A process's environment is readable by every
// user who may inspect the process, is inherited by child processes, and cannot be cleared in
// Go. So this is for development, and refused otherwise. Each use is logged as a warning, with
// the addresses.
//
// Without such a variable there are no signers. A malformed key, a duplicate address and a gap
// in the numbers are refused, with the variable's name.
func Environment(environ []string, development bool, log *slog.Logger) ([]*Signer, error) {
	all, ones, err := keyVariables(environ)
	if err != nil || all == nil && len(ones) == 0 {
		return nil, err
	}
	if !development {
		return nil, ErrNotDevelopment.Because("private keys in environment variables are allowed only in development")
	}
	var values []variable
	if all != nil {
		if values, err = elements(*all); err != nil {
			return nil, err
		}
	}
	signers, err := fromHex(append(values, ones...))
	if err != nil {
		return nil, err
	}
	log.Warn("PRIVATE KEYS FROM THE ENVIRONMENT: for development only, never with keys that hold anything of value",
		"addresses", addressesOf(signers))
	return signers, nil
}

// variable is a private key in hex, and its variable's name.
type variable struct{ name, value string }

// keyVariables finds the variables and sorts the numbered ones.
func keyVariables(environ []string) (all *string, ones []variable, err error) {
	found := map[int]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if name == VariableOfAll {
			all = &value
		}
		count, isOne := strings.CutPrefix(name, VariableOfOne)
		if !isOne {
			continue
		}
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || n >= MaxKeys || strconv.Itoa(n) != count {
			return nil, nil, ErrBadKey.Because("%s… must be followed by a number from 0 to %d", VariableOfOne, MaxKeys-1)
		}
		found[n] = value
	}
	for n := range len(found) {
		value, there := found[n]
		if !there {
			return nil, nil, ErrBadKey.Because("there are %d variables %s…, but not %s%d: number them from 0 without a gap", len(found), VariableOfOne, VariableOfOne, n)
		}
		ones = append(ones, variable{VariableOfOne + strconv.Itoa(n), value})
	}
	return all, ones, nil
}

// elements reads the array. It leaves out the JSON decoder's error text, which may quote keys.
func elements(text string) ([]variable, error) {
	var values []*string
	if err := json.Unmarshal([]byte(text), &values); err != nil || len(values) == 0 || len(values) > MaxKeys {
		return nil, ErrBadKey.Because("%s is not a JSON array of 1 to %d strings", VariableOfAll, MaxKeys)
	}
	variables := make([]variable, len(values))
	for i, v := range values {
		variables[i].name = fmt.Sprintf("%s[%d]", VariableOfAll, i)
		if v != nil {
			variables[i].value = *v
		}
	}
	return variables, nil
}

// fromHex makes a signer of each key.
func fromHex(variables []variable) (signers []*Signer, err error) {
	defer func() {
		if err != nil {
			closeAll(signers)
			signers = nil
		}
	}()
	seen := map[chain.Address]string{}
	for _, v := range variables {
		var secret [32]byte
		digits := strings.TrimPrefix(v.value, "0x")
		if len(digits) != 2*len(secret) {
			return signers, ErrBadKey.Because("%s is not 64 hex digits", v.name)
		}
		if _, err := hex.Decode(secret[:], []byte(digits)); err != nil {
			clear(secret[:])
			return signers, ErrBadKey.Because("%s is not 64 hex digits", v.name)
		}
		s, err := secp256k1(secret[:], v.name)
		if err != nil {
			return signers, err
		}
		signers = append(signers, s)
		if other, twice := seen[s.address]; twice {
			return signers, ErrBadKey.Because("%s and %s hold the same key, of %s", other, v.name, s.address)
		}
		seen[s.address] = v.name
	}
	return signers, nil
}

func addressesOf(signers []*Signer) []string {
	addresses := make([]string, len(signers))
	for i, s := range signers {
		addresses[i] = s.address.String()
	}
	return addresses
}
