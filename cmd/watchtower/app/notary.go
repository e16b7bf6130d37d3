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

// openSigner reads the key that seals are signed with from a file of 64 hex digits, and
// makes the file if it is not there. Where it cannot be made nobody seals, for that is no
// reason not to deliver. No file name means a key that lives as long as the process.
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
			log.Warn("the log is not sealed: there is no audit key, and none can be made", "file", name, "err", err)
			return nil, nil //nolint:nilnil // nobody
		}
		signer, err = ReadSigner(name)
	}
	if err != nil {
		return nil, err
	}
	log.Info("the audit key was read: seals of the log are signed with it", "key", signer.Key(), "file", name)
	return &signer, nil
}

// keyBytes is the length of a seed of ed25519, and of the vault's master key.
const keyBytes = 32

// ReadSigner reads the key that seals are signed with.
func ReadSigner(name string) (audit.Signer, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return audit.Signer{}, fmt.Errorf("audit key: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return audit.Signer{}, fmt.Errorf("audit key %s is not %d hex digits", name, 2*keyBytes) // and err may show some
	}
	signer, err := audit.NewSigner(secret)
	if err != nil {
		return audit.Signer{}, fmt.Errorf("audit key %s: %w", name, err)
	}
	return signer, nil
}

func (a *App) notary() *notary.Notary {
	return &notary.Notary{
		Seals:  notary.Seals{Store: a.store, Codec: audit.Codec(), Crash: a.ports.Crash},
		Signer: *a.ports.Signer, Settings: a.settings.Seals,
		Now: a.ports.Now, Random: a.ports.Random, Log: a.ports.Log,
	}
}
