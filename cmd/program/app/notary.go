package app

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/tempo-watchtower/watchtower/commands/notary"
	"github.com/tempo-watchtower/watchtower/domain/audit"
)

// openSigner reads the key that signs seals from a file of 64 hex digits, and creates the file
// if it is missing. If it cannot be created, the log is not sealed and the service still
// delivers. Without a file name the key lives as long as the process.
func openSigner(name string, log *slog.Logger) (*audit.Signer, error) {
	if name == "" {
		secret := make([]byte, keyBytes)
		rand.Read(secret) //nolint:errcheck // never fails
		signer, err := audit.NewSigner(secret)
		return &signer, err
	}
	signer, err := ReadSigner(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(name); err != nil {
			log.Warn("the log is not sealed: there is no audit key, and creating one failed", "file", name, "err", err)
			return nil, nil //nolint:nilnil // nobody
		}
		signer, err = ReadSigner(name)
	}
	if err != nil {
		return nil, err
	}
	log.Info("the audit key was read and signs the seals of the log", "key", signer.Key(), "file", name)
	return &signer, nil
}

// keyBytes is the length in bytes of an ed25519 seed, and of the vault's master key.
const keyBytes = 32

// ReadSigner reads the key that signs seals.
func ReadSigner(name string) (audit.Signer, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return audit.Signer{}, fmt.Errorf("audit key: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return audit.Signer{}, fmt.Errorf("audit key %s is not %d hex digits", name, 2*keyBytes) // without err, which may quote part of the key
	}
	signer, err := audit.NewSigner(secret)
	if err != nil {
		return audit.Signer{}, fmt.Errorf("audit key %s: %w", name, err)
	}
	return signer, nil
}

func (a *App) notary() *notary.Notary {
	return &notary.Notary{
		Seals:  notary.Seals{Store: a.Store, Codec: audit.Codec(), Random: a.Ports.Random, Crash: a.Ports.Crash},
		Signer: *a.Ports.Signer, Settings: a.Settings.Seals,
		Now: a.Ports.Now, Log: a.Ports.Log,
	}
}
