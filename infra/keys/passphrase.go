package keys

import (
	"bytes"
	"fmt"
)

// Passphrase is the place of a passphrase, not the passphrase itself, which is read when it is
// needed and then cleared. A command line's flag is no such place, because every user of the
// machine can read flags.
type Passphrase struct {
	where string
	read  func() ([]byte, error)
}

// PassphraseFile reads it from a file, without one line break at the end.
func PassphraseFile(path string) Passphrase {
	return Passphrase{path, func() ([]byte, error) {
		text, err := readFile(path)
		if err != nil {
			return nil, err
		}
		text = bytes.TrimSuffix(text, []byte("\n"))
		return bytes.TrimSuffix(text, []byte("\r")), nil
	}}
}

// PassphraseVariable reads it from an environment variable; lookup is os.LookupEnv.
func PassphraseVariable(name string, lookup func(string) (string, bool)) Passphrase {
	return Passphrase{"variable " + name, func() ([]byte, error) {
		value, set := lookup(name)
		if !set {
			return nil, ErrBadSetting.Because("the variable %s with the passphrase is not set", name)
		}
		return []byte(value), nil
	}}
}

// String names the place, and nothing more.
func (p Passphrase) String() string { return fmt.Sprintf("passphrase in %s", p.where) }
