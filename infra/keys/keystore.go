package keys

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Keystore returns a signer for each encrypted key in a folder: files of the Web3 Secret
// Storage Definition, version 3, as written by geth, clef, cast and web3 libraries. One
// passphrase opens all of them. The folder may hold no other files, except in subfolders or
// with names that begin with a dot. Links are followed.
//
// The folder is refused, with the file's name, if a file has another format, the passphrase
// does not open it, or its key does not match the address in it. Opening takes about a second
// and 256 MiB for each file of the usual strength, one after the other.
func Keystore(ctx context.Context, folder string, passphrase Passphrase) (signers []*Signer, err error) {
	defer func() {
		if err != nil {
			closeAll(signers)
			signers = nil
		}
	}()
	files, err := keyFiles(folder)
	if err != nil {
		return nil, err
	}
	phrase, err := passphrase.read()
	if err != nil {
		return nil, err
	}
	defer clear(phrase)
	seen := map[chain.Address]string{}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return signers, err
		}
		s, err := open(file, phrase)
		if err != nil {
			return signers, err
		}
		signers = append(signers, s)
		if other, twice := seen[s.address]; twice {
			return signers, ErrBadKey.Because("%s and %s hold the same key, of %s", other, file, s.address)
		}
		seen[s.address] = file
	}
	return signers, nil
}

// keyFiles are the key files of a folder, by name.
func keyFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		file := filepath.Join(folder, entry.Name())
		info, err := os.Stat(file) // follows links: mounted secrets are links
		if err != nil {
			return nil, err
		}
		switch {
		case info.IsDir():
		case !info.Mode().IsRegular():
			return nil, ErrBadKey.Because("%s is not a file", file)
		default:
			files = append(files, file)
		}
	}
	if len(files) == 0 || len(files) > MaxKeys {
		return nil, ErrBadKey.Because("%s holds %d files, not 1 to %d", folder, len(files), MaxKeys)
	}
	return files, nil
}

// open decrypts one file.
func open(file string, phrase []byte) (*Signer, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	secret, named, err := decrypt(text, phrase)
	if err != nil {
		return nil, ErrBadKey.Because("%s: %v", file, err)
	}
	s, err := secp256k1(secret, file)
	if err != nil {
		return nil, err
	}
	if named != nil && *named != s.address {
		s.Close()
		return nil, ErrBadKey.Because("%s names %s, but its key belongs to %s", file, named, s.address)
	}
	return s, nil
}
