package config

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
)

// Engine is what keeps data.
type Engine string

const (
	Embedded Engine = "embedded" // SQLite files in a folder of this machine
	Memory   Engine = "memory"   // nothing outlives the process
	Postgres Engine = "postgres"
)

// Store says where data is kept.
type Store struct {
	Engine Engine
	Dir    string // of Embedded
	URL    Secret // of Postgres
}

// String is the text that names the store, with its secrets left out.
func (s Store) String() string {
	switch s.Engine {
	case Embedded:
		return embeddedPrefix + s.Dir
	case Memory:
		return embeddedPrefix + memoryDir
	}
	return s.URL.String()
}

const (
	embeddedPrefix = "embedded:"
	memoryDir      = ":memory:"
	storeForms     = "`embedded:DIR`, `embedded::memory:` or `postgres://…`"
)

// parseStore reads the text form of a store. Its errors do not show the text.
func parseStore(text string) (Store, error) {
	if dir, ok := strings.CutPrefix(text, embeddedPrefix); ok {
		switch {
		case dir == memoryDir:
			return Store{Engine: Memory}, nil
		case dir == "":
			return Store{}, errors.New("names no folder: write embedded:DIR")
		case strings.HasPrefix(dir, ":"):
			return Store{}, errors.New("is neither embedded:DIR nor embedded::memory:") //nolint:staticcheck // the colon is part of the name
		case strings.HasPrefix(dir, "//"):
			return Store{}, errors.New("is not a URL: write embedded:DIR")
		case strings.ContainsRune(dir, 0):
			return Store{}, errors.New("has a NUL in the folder's name")
		}
		return Store{Engine: Embedded, Dir: filepath.Clean(dir)}, nil
	}
	scheme, _, ok := strings.Cut(text, "://")
	switch {
	case ok && (scheme == "postgres" || scheme == "postgresql"):
	case ok && (strings.HasPrefix(scheme, "esdb") || strings.HasPrefix(scheme, "kurrentdb")):
		return Store{}, errors.New("names an EventStoreDB, which this version cannot use: write embedded:DIR or postgres://…")
	default:
		return Store{}, errors.New("must be embedded:DIR, embedded::memory: or postgres://…")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" && !u.Query().Has("host") {
		// The parser's own error quotes the text, password included.
		return Store{}, errors.New("is not a postgres:// URL with a host (special characters of a password must be percent-encoded)")
	}
	return Store{Engine: Postgres, URL: NewSecret(text)}, nil
}
