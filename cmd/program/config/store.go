package config

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
)

// Engine is a kind of data store.
type Engine string

const (
	Embedded Engine = "embedded" // SQLite files in a directory of this machine
	Memory   Engine = "memory"   // nothing survives the process
	Postgres Engine = "postgres"
	// EventStoreDB keeps the log only.
	EventStoreDB Engine = "eventstoredb"
)

// Store configures where data is stored.
type Store struct {
	Engine Engine
	Dir    string // of Embedded
	URL    Secret // of Postgres and EventStoreDB
}

// String names the store, without its secrets.
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
	databaseForms  = "`embedded:DIR`, `embedded::memory:` or `postgres://…`"
	storeForms     = "`embedded:DIR`, `embedded::memory:`, `postgres://…` or `esdb://…`"
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
	case ok && (scheme == "esdb" || scheme == "esdb+discover"):
		return parseEventStore(text)
	case ok && (strings.HasPrefix(scheme, "kurrent") || strings.HasPrefix(scheme, "kdb")):
		return Store{}, errors.New("must begin with esdb:// or esdb+discover://, also for a KurrentDB")
	default:
		return Store{}, errors.New("must be embedded:DIR, embedded::memory:, postgres://… or esdb://…")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" && !u.Query().Has("host") {
		// The parser's own error quotes the text, with the password.
		return Store{}, errors.New("is not a postgres:// URL with a host (special characters of a password must be percent-encoded)")
	}
	return Store{Engine: Postgres, URL: NewSecret(text)}, nil
}

// parseEventStore checks only for a host: a list of hosts is not a valid URL. The client parses
// the rest.
func parseEventStore(text string) (Store, error) {
	_, rest, _ := strings.Cut(text, "://")
	hosts, _, _ := strings.Cut(rest, "?")
	if i := strings.LastIndexByte(hosts, '@'); i >= 0 {
		hosts = hosts[i+1:]
	}
	if strings.Trim(hosts, ",/") == "" || strings.ContainsAny(text, "\x00 ") {
		return Store{}, errors.New("is not an esdb:// URL with a host (special characters of a password must be percent-encoded)")
	}
	return Store{Engine: EventStoreDB, URL: NewSecret(text)}, nil
}
