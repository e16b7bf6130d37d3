package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Backup is a copy of a directory's log and signed bytes. The vault's key is not in it.
type Backup struct {
	Version int               `json:"version"` // of this form: 1
	At      time.Time         `json:"at"`      // of its beginning
	Head    eventlog.Position `json:"head"`    // position of the last event in it
	Files   []Copied          `json:"files"`
}

// Copied is a file of a backup.
type Copied struct {
	Name   string `json:"name"` // relative to the backup
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Told hears how many bytes of a step are done, of all; 0 of 0 if that is unknown.
type Told func(step string, done, all uint64)

const (
	backupVersion = 1
	manifestName  = "backup.json" // written last: a folder without it is no complete backup
	archiveFolder = "archive"
	tellEvery     = 100 * time.Millisecond
)

// precious are the files of a backup, in their order. The log comes first: a data key that is newer than
// the copied log is harmless, and a payload without its key would be lost. The rest of a directory is
// made again from the log.
func precious() []string { return []string{"events.db", "keys.db"} }

// MakeBackup copies a directory's log and signed bytes into a new folder, even while a service uses the
// directory: each file as of one moment. segments is the folder of the archive; empty if there is none.
// The copy is complete, and on disk, when MakeBackup returns without an error.
func MakeBackup(ctx context.Context, dir, segments, to string, now time.Time, told Told) (b Backup, err error) {
	if err := emptyFolder(to); err != nil {
		return b, err
	}
	b = Backup{Version: backupVersion, At: now.UTC()}
	for _, name := range precious() {
		if err := copyDatabase(ctx, filepath.Join(dir, name), filepath.Join(to, name), told); err != nil {
			return b, fmt.Errorf("copy %s: %w", name, err)
		}
		if b.Files, err = noted(ctx, b.Files, to, name, told); err != nil {
			return b, err
		}
	}
	copied, err := OpenBeside(to)
	if err != nil {
		return b, err
	}
	head, errHead := copied.Head(ctx)
	listed, errListed := copied.Segments(ctx)
	if err := errors.Join(errHead, errListed, copied.Close()); err != nil {
		return b, err
	}
	b.Head = head
	if b.Files, err = copySegments(ctx, b.Files, listed, segments, to, told); err != nil {
		return b, err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return b, err
	}
	if err := writeSynced(filepath.Join(to, manifestName), func(f io.Writer) error { _, err := f.Write(append(text, '\n')); return err }); err != nil {
		return b, err
	}
	return b, syncFolder(to)
}

// copySegments copies the archive's files that the copied log names. They never change.
func copySegments(ctx context.Context, files []Copied, listed []archive.Segment, from, to string, told Told) ([]Copied, error) {
	if len(listed) == 0 {
		return files, nil
	}
	if from == "" {
		return files, fmt.Errorf("the log has %d segments in an archive, and no archive is configured", len(listed))
	}
	if err := os.Mkdir(filepath.Join(to, archiveFolder), 0o700); err != nil {
		return files, err
	}
	for _, s := range listed {
		name := filepath.Join(archiveFolder, s.Name)
		one, err := copyFile(ctx, filepath.Join(from, s.Name), filepath.Join(to, name), told)
		if err != nil {
			return files, fmt.Errorf("copy segment %s: %w", s.Name, err)
		}
		one.Name = name
		files = append(files, one)
	}
	return files, syncFolder(filepath.Join(to, archiveFolder))
}

// emptyFolder makes a folder, or takes one that is empty.
func emptyFolder(name string) error {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(name)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty", name)
	}
	return err
}

// copyDatabase writes what a database holds at one moment into a new file. Deleted content, which may lie
// in free pages, is not copied.
func copyDatabase(ctx context.Context, from, to string, told Told) (err error) {
	size, err := os.Stat(from)
	if err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(from, sqlite.OpenReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetBusyTimeout(busyPatience)
	conn.SetInterrupt(ctx.Done())
	watching := watch(to, filepath.Base(from), uint64(size.Size()), told)
	err = sqlitex.ExecuteTransient(conn, "VACUUM INTO ?", &sqlitex.ExecOptions{Args: []any{to}})
	watching()
	if err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return syncFile(to)
}

// watch tells how far a file has grown, until its result is called.
func watch(name, step string, all uint64, told Told) (end func()) {
	if told == nil {
		return func() {}
	}
	stop, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for tick := time.NewTicker(tellEvery); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				if info, err := os.Stat(name); err == nil {
					told(step, min(uint64(info.Size()), all), all)
				}
			}
		}
	}()
	return func() { close(stop); <-gone }
}

// noted adds a file of a backup to the list, with its digest.
func noted(ctx context.Context, files []Copied, folder, name string, told Told) ([]Copied, error) {
	one, err := digested(ctx, filepath.Join(folder, name), io.Discard, told)
	one.Name = name
	return append(files, one), err
}

// copyFile copies a file, and returns what it has copied.
func copyFile(ctx context.Context, from, to string, told Told) (c Copied, err error) {
	err = writeSynced(to, func(f io.Writer) (err error) { c, err = digested(ctx, from, f, told); return err })
	return c, err
}

// digested reads a file, writes it to a writer, and returns its digest.
func digested(ctx context.Context, from string, to io.Writer, told Told) (c Copied, err error) {
	f, err := os.Open(from)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	digest, buffer := sha256.New(), make([]byte, 1<<20)
	for {
		n, err := f.Read(buffer)
		if _, werr := to.Write(buffer[:n]); werr != nil {
			return c, werr
		}
		digest.Write(buffer[:n])
		c.Bytes += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			c.SHA256 = hex.EncodeToString(digest.Sum(nil))
			return c, nil
		case err != nil:
			return c, err
		case ctx.Err() != nil:
			return c, ctx.Err()
		case told != nil:
			told(filepath.Base(from), uint64(c.Bytes), uint64(info.Size()))
		}
	}
}

// writeSynced writes a new file that only its owner reads, and waits until it is on disk.
func writeSynced(name string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}

// syncFolder waits until a folder's entries are on disk.
func syncFolder(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
