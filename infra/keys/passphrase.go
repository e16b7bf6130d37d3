package keys

import (
	"bytes"
	"fmt"
)

// Passphrase is where a passphrase is found. It is not the passphrase, which is read
// when it is needed and then cleared; a command line's flag is no such place,
// because everybody on the machine can read those.
type Passphrase struct {
	where string
	read  func() ([]byte, error)
}

// PassphraseFile finds it in a file, less one line break at the end.
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

// PassphraseVariable finds it in an environment's variable; lookup is os.LookupEnv.
func PassphraseVariable(name string, lookup func(string) (string, bool)) Passphrase {
	return Passphrase{"variable " + name, func() ([]byte, error) {
		value, set := lookup(name)
		if !set {
			return nil, ErrBadSetting.Because("the variable %s, which is to hold a passphrase, is not set", name)
		}
		return []byte(value), nil
	}}
}

// String says where, and no more.
func (p Passphrase) String() string { return fmt.Sprintf("passphrase in %s", p.where) }
