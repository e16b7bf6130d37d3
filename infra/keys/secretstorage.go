package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"golang.org/x/crypto/scrypt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Limits on a file's key derivation. go-ethereum's standard needs 256 MiB and 2^21 blocks for
// scrypt.
const (
	maxScryptMemory = 512 << 20 // bytes: 128 n r
	maxScryptWork   = 1 << 24   // n r p
	maxIterations   = 10_000_000
)

// stored is a file of the Web3 Secret Storage Definition, version 3.
type stored struct {
	Address string  `json:"address"` // optional
	Version float64 `json:"version"`
	Crypto  struct {
		Cipher       string `json:"cipher"`
		CipherText   string `json:"ciphertext"`
		CipherParams struct {
			IV string `json:"iv"`
		} `json:"cipherparams"`
		KDF       string     `json:"kdf"`
		KDFParams derivation `json:"kdfparams"`
		MAC       string     `json:"mac"`
	} `json:"crypto"`
}

// derivation is the key derivation from the passphrase.
type derivation struct {
	Salt  string `json:"salt"`
	DKLen int    `json:"dklen"`
	N     int    `json:"n"` // scrypt: cost
	R     int    `json:"r"` // scrypt: block size
	P     int    `json:"p"` // scrypt: parallelism
	C     int    `json:"c"` // PBKDF2: iterations
	PRF   string `json:"prf"`
}

// decrypt returns the private key of a stored file and the address in the file, nil if none.
// Its errors quote nothing of the file.
//
// Source: the Web3 Secret Storage Definition, ethereum.org.
func decrypt(text, passphrase []byte) (secret []byte, named *chain.Address, err error) {
	var file stored
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, nil, errors.New("it is not a keystore file in JSON")
	}
	if file.Version != 3 || file.Crypto.Cipher != "aes-128-ctr" {
		return nil, nil, errors.New("it is not of version 3 with the cipher aes-128-ctr")
	}
	if file.Address != "" {
		a, err := chain.ParseAddress("0x" + strings.TrimPrefix(file.Address, "0x"))
		if err != nil {
			return nil, nil, errors.New("its address is invalid")
		}
		named = &a
	}
	secret, err = hexOf(file.Crypto.CipherText, 32, "ciphertext")
	if err != nil {
		return nil, nil, err
	}
	iv, err := hexOf(file.Crypto.CipherParams.IV, aes.BlockSize, "iv")
	if err != nil {
		return nil, nil, err
	}
	mac, err := hexOf(file.Crypto.MAC, 32, "mac")
	if err != nil {
		return nil, nil, err
	}
	derived, err := file.Crypto.KDFParams.derive(file.Crypto.KDF, passphrase)
	if err != nil {
		return nil, nil, err
	}
	defer clear(derived)
	made := chain.Keccak(derived[16:32], secret)
	if subtle.ConstantTimeCompare(made[:], mac) != 1 {
		return nil, nil, errors.New("the passphrase is wrong, or the file is damaged")
	}
	block, err := aes.NewCipher(derived[:16])
	if err != nil {
		return nil, nil, fmt.Errorf("aes-128-ctr: %w", err)
	}
	cipher.NewCTR(block, iv).XORKeyStream(secret, secret)
	return secret, named, nil
}

// derive returns 32 bytes.
func (d derivation) derive(kdf string, passphrase []byte) ([]byte, error) {
	salt, err := hex.DecodeString(strings.TrimPrefix(d.Salt, "0x"))
	if err != nil || d.DKLen != 32 {
		return nil, errors.New("its salt is not hex or its dklen is not 32")
	}
	switch {
	case kdf == "scrypt" && d.bearable():
		derived, err := scrypt.Key(passphrase, salt, d.N, d.R, d.P, d.DKLen)
		if err != nil {
			return nil, errors.New("its parameters are not valid for scrypt")
		}
		return derived, nil
	case kdf == "pbkdf2" && d.PRF == "hmac-sha256" && d.C >= 1 && d.C <= maxIterations:
		derived, err := pbkdf2.Key(sha256.New, string(passphrase), salt, d.C, d.DKLen)
		if err != nil {
			return nil, errors.New("its parameters are not valid for PBKDF2")
		}
		return derived, nil
	}
	return nil, errors.New("its key derivation is neither scrypt nor pbkdf2 with hmac-sha256, or too expensive")
}

// bearable reports whether scrypt stays within the limits on memory and work.
func (d derivation) bearable() bool {
	if d.N < 2 || d.R < 1 || d.P < 1 || d.N > maxScryptWork || d.R > maxScryptWork || d.P > maxScryptWork {
		return false
	}
	hi, work := bits.Mul64(uint64(d.N)*uint64(d.R), uint64(d.P))
	return hi == 0 && work <= maxScryptWork && 128*uint64(d.N)*uint64(d.R) <= maxScryptMemory
}

// hexOf reads a field of size bytes in hex.
func hexOf(digits string, size int, field string) ([]byte, error) {
	b, err := hex.DecodeString(strings.TrimPrefix(digits, "0x"))
	if err != nil || len(b) != size {
		return nil, fmt.Errorf("its %s is not %d bytes in hex", field, size)
	}
	return b, nil
}
