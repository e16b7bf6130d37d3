package embedded

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// Feed is a directory as a consumer of its events opens it, from a process of its own:
// the log is read beside the service, and feed.db is the consumers'. Several processes
// may have a feed of one directory open, on the machine where it lies.
type Feed struct {
	*Beside

	groups *Groups
	once   sync.Once
	err    error // of closing
}

// FeedOptions are what may differ; the zero FeedOptions are what a consumer wants.
type FeedOptions struct {
	Now func() time.Time // the clock of claims; nil is time.Now
}

// OpenFeed opens a directory that a service has made. feed.db is made where it is missing.
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

// Close ends subscriptions with event.ErrClosed and closes the files. Closing again
// does nothing more.
func (f *Feed) Close() error {
	f.once.Do(func() {
		f.log.stop() // nobody begins anything anew for which there are no groups
		f.err = errors.Join(f.groups.file.close(), f.Beside.Close())
	})
	return f.err
}
