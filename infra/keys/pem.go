package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxFile is the largest key or passphrase file, in bytes.
const maxFile = 64 << 10

// P256File is the signer of a P-256 key, for Tempo: one PEM block PRIVATE KEY (PKCS #8, RFC
// 5958), not encrypted, in a file of its own.
func P256File(path string) (*Signer, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, ErrBadKey.Because("%s holds no PEM block", path)
	}
	defer clear(block.Bytes)
	if block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, ErrBadKey.Because("%s is not one PEM block PRIVATE KEY; convert it with openssl pkcs8 -topk8 -nocrypt", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, ErrBadKey.Because("%s holds no private key in PKCS #8", path)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, ErrBadKey.Because("%s holds a key that is not a P-256 key", path)
	}
	return p256(key)
}

// readFile reads a small file completely.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	text := make([]byte, maxFile+1)
	n, err := io.ReadFull(f, text)
	switch {
	case err == nil:
		clear(text)
		return nil, ErrBadKey.Because("%s has more than %d bytes", path, maxFile)
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		clear(text)
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text[:n:n], nil
}
