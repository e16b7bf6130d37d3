package config

import (
	"errors"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/notary"
	"github.com/tempo-watchtower/watchtower/domain/audit"
)

// Audit configures how the log is sealed.
type Audit struct {
	// KeyFile holds the key that signs seals. With a store in memory it may be empty: the key
	// then lives as long as the store.
	KeyFile string
	Seals   notary.Settings
}

func (d *draft) auditing() []*setting {
	const s = time.Second
	return []*setting{
		{
			path: "audit.key-file", kind: text, absent: "`audit.key` beside the vault's key, none in memory",
			allowed: "a path",
			doc: "The file with the key that signs the seals of the log: 32 secret bytes in hex, created if it does not exist. " +
				"`watchtower audit key` prints the public key. Each replica may have its own key; then `audit verify` needs all public keys.",
			show: func() string { return d.Audit.KeyFile },
			read: func(text string) error {
				switch {
				case isKey(text):
					return errors.New("is a key, but must be the path of a file that holds it")
				case strings.ContainsRune(text, 0):
					return errors.New("has a NUL")
				}
				d.Audit.KeyFile = text
				return nil
			},
		},
		durations("audit.seal-every", &d.Audit.Seals.Every, 10*s, s, time.Hour,
			"The pause after which new events of the log are sealed. Without new events there is no seal."),
		numbers("audit.seal-events", &d.Audit.Seals.Events, 5000, 100, audit.MarksMax,
			"How many events one seal covers at most; several seals are made at once if there are more events."),
	}
}
