package config

import (
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// Snapshots configures the folded states kept of long streams.
type Snapshots struct {
	Every int // events between snapshots; 0: no snapshots
}

// Archive configures where old events are moved, and when.
type Archive struct {
	Dir       string        // empty: events stay in the store
	After     time.Duration // minimum age of an event to be archived
	Segment   int           // positions per file
	Partition int64         // positions per partition of a Postgres log
}

// String names the archive in messages.
func (a Archive) String() string {
	if a.Dir == "" {
		return ""
	}
	return filePrefix + a.Dir
}

const filePrefix = "file:"

func (d *draft) archiving() []*setting {
	const h, year = time.Hour, 365 * 24 * time.Hour
	return []*setting{
		numbers("snapshots.every", &d.Snapshots.Every, 500, 0, 1_000_000,
			"After how many events of a group a snapshot is stored beside the due queue, so that commands need not read the whole group; 0 stores none. Snapshots may be deleted at any time."),
		{
			path: "archive", kind: text, absent: "none: events stay in the store", allowed: "`file:DIR`",
			doc: "The place for events that are older than `retention.events`: they move from the store into files, which are read as a part of the log. " +
				"All replicas and commands need the same folder. Once events have moved, the setting is needed for ever. " +
				"It cannot be used with a store in memory or an EventStoreDB.",
			show: func() string { return d.Archive.String() },
			read: func(text string) error {
				dir, ok := strings.CutPrefix(text, filePrefix)
				switch {
				case !ok:
					return errors.New("must be file:DIR")
				case dir == "" || strings.HasPrefix(dir, "//"):
					return errors.New("names no folder: write file:DIR")
				case strings.ContainsRune(dir, 0):
					return errors.New("has a NUL in the folder's name")
				}
				d.Archive.Dir = filepath.Clean(dir)
				return nil
			},
		},
		durations("retention.events", &d.Archive.After, 30*24*h, 0, 10*year,
			"The age at which events move to the `archive`, if there is one."),
		numbers("retention.segment", &d.Archive.Segment, 1_000_000, 100, 100_000_000,
			"How many events one file of the `archive` holds."),
		numbers("retention.partition", &d.Archive.Partition, 20_000_000, 500, 1_000_000_000,
			"How many events one partition of a Postgres log holds; it applies to new partitions. A partition is dropped when all its events are in the `archive`."),
	}
}
