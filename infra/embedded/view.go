package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"
)

// viewConns bounds the read models' connections. One writes at a time; the others read
// meanwhile.
const (
	viewConns    = 8
	viewCacheKiB = 16 << 10 // per connection
)

func openView(path string, c care) (*sql.DB, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	settings := url.Values{
		"_pragma": {
			// First, because the following pragmas may have to wait too.
			fmt.Sprintf("busy_timeout(%d)", busyPatience.Milliseconds()),
			"journal_mode(WAL)",
			fmt.Sprintf("synchronous(%s)", c),
			"temp_store(MEMORY)",
			fmt.Sprintf("cache_size(-%d)", viewCacheKiB),
		},
		// A transaction that reads first and writes later could not become a writer while
		// another one is; so it is a writer from its start.
		"_txlock": {"immediate"},
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(full), RawQuery: settings.Encode()}
	connector, err := sqlite.NewConnector(name.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	view := sql.OpenDB(connector)
	view.SetMaxOpenConns(viewConns)
	view.SetMaxIdleConns(viewConns)
	if err := view.PingContext(context.Background()); err != nil {
		view.Close() //nolint:errcheck // the first error is told
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return view, nil
}
