package embedded

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// Feed is a directory opened by a consumer of its events, from a process of its own. It reads
// the log next to the service, and stores consumers' state in feed.db. Several processes may
// open feeds of one directory, on the machine where it is.
type Feed struct {
	*Beside

	groups *Groups
	once   sync.Once
	err    error // of Close
}

// FeedOptions are the settings of a feed. The zero FeedOptions suit a consumer.
type FeedOptions struct {
	Now func() time.Time // the clock of claims; nil means time.Now
}

// OpenFeed opens the directory of a service. It creates feed.db if it is missing.
func OpenFeed(dir string, o FeedOptions) (*Feed, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	log, err := OpenBeside(dir)
	if err != nil {
		return nil, err
	}
	groups, err := openFile(filepath.Join(dir, "feed.db"), durable, tables("feed"), 1, hooks{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open feed of %s: %w", dir, err), log.Close())
	}
	return &Feed{Beside: log, groups: &Groups{file: groups, now: o.Now}}, nil
}

// Groups are the consumers' checkpoints and parked streams.
func (f *Feed) Groups() *Groups { return f.groups }

// Close ends subscriptions with eventlog.ErrClosed and closes the files. A second Close does
// nothing.
func (f *Feed) Close() error {
	f.once.Do(func() {
		f.log.stop() // first, so that no subscription runs without groups
		f.err = errors.Join(f.groups.file.close(), f.Beside.Close())
	})
	return f.err
}
