package app

import (
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// groupSnapshots keeps snapshots of groups, whose streams grow long. Transactions have at most a
// dozen events, and get none.
func (a *App) groupSnapshots() *handler.Snapshots[group.State] {
	if a.Ports.Storage.Snapshots == nil || a.Settings.SnapshotsEvery == 0 {
		return nil
	}
	return &handler.Snapshots[group.State]{
		Rows: a.Ports.Storage.Snapshots, Every: a.Settings.SnapshotsEvery,
		Schema: group.SnapshotSchema, Encode: group.State.Snapshot, Decode: group.Restore,
		Failed: func(stream eventlog.Stream, err error) {
			a.Ports.Log.Warn("a snapshot cannot be used, reading all events instead", "stream", stream, "err", err)
		},
	}
}
