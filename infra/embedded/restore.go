package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"zombiezen.com/go/sqlite"
)

// restoringFolder is the folder in a directory in which a restore builds the store. While it is there, the
// directory does not open.
const restoringFolder = "restoring"

// Restore checks a backup and puts its store into a directory that has none, and its segments into the
// archive's folder. ready is called with a folder that holds the store, before the directory opens for
// anybody: what must be recorded first is recorded there. After an error, or a crash, the directory does
// not open, and the restore can be repeated.
func Restore(ctx context.Context, from, dir, segments string, told Told, ready func(dir string, b Backup) error) (b Backup, err error) {
	if b, err = readManifest(from); err != nil {
		return b, err
	}
	into := filepath.Join(dir, restoringFolder)
	if err := makeRoom(dir, into); err != nil {
		return b, err
	}
	for _, f := range b.Files {
		to, err := placeOf(f.Name, into, segments)
		if err != nil {
			return b, err
		}
		if err := bring(ctx, f, from, to, told); err != nil {
			return b, fmt.Errorf("restore %s: %w", f.Name, err)
		}
	}
	for _, name := range precious() {
		if err := sound(filepath.Join(into, name)); err != nil {
			return b, fmt.Errorf("restore %s: %w", name, err)
		}
	}
	if err := ready(into, b); err != nil {
		return b, err
	}
	return b, place(into, dir)
}

func readManifest(from string) (b Backup, err error) {
	name := filepath.Join(from, manifestName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("%s is no complete backup: it has no %s", from, manifestName)
	}
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	switch {
	case err != nil:
		return b, fmt.Errorf("%s: %w", name, err)
	case b.Version != backupVersion:
		return b, fmt.Errorf("%s: a backup of form %d, and this program knows form %d", name, b.Version, backupVersion)
	}
	for _, needed := range precious() {
		if !slices.ContainsFunc(b.Files, func(f Copied) bool { return f.Name == needed }) {
			return b, fmt.Errorf("%s does not name %s", name, needed)
		}
	}
	return b, nil
}

// makeRoom makes the folder of a restore, or empties that of a restore that was not finished.
func makeRoom(dir, into string) error {
	_, err := os.Lstat(into)
	if errors.Is(err, fs.ErrNotExist) {
		err = vacant(dir)
	} else if err == nil {
		err = os.RemoveAll(into)
	}
	if err == nil {
		err = os.MkdirAll(into, 0o700)
	}
	if err != nil {
		return err
	}
	return syncFolder(dir)
}

// vacant refuses a directory that has a store.
func vacant(dir string) error {
	for _, name := range append(precious(), "work.db", "view.db") {
		_, err := os.Lstat(filepath.Join(dir, name))
		if err == nil {
			return fmt.Errorf("%s has a store already, which would be lost: move it away first", dir)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// bring copies a file of a backup to its place, and refuses a damaged one. A segment that is there
// already may be in use, so it is replaced as a whole.
func bring(ctx context.Context, f Copied, from, to string, told Told) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	part := to + ".part"
	got, err := copyFile(ctx, filepath.Join(from, filepath.FromSlash(f.Name)), part, told)
	if err == nil && (got.SHA256 != f.SHA256 || got.Bytes != f.Bytes) {
		err = fmt.Errorf("the backup is damaged: the file has %d bytes with SHA-256 %s, and had %d with %s", got.Bytes, got.SHA256, f.Bytes, f.SHA256)
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	return syncFolder(filepath.Dir(to))
}

// place moves a store from the folder of its restore into its directory. What can be made again from the
// log is left behind.
func place(into, dir string) error {
	entries, err := os.ReadDir(into)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.ContainsFunc(precious(), func(name string) bool { return e.Name() == name || e.Name() == name+"-wal" }) {
			if err := os.Rename(filepath.Join(into, e.Name()), filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(into); err != nil { // from here on the directory opens
		return err
	}
	return syncFolder(dir)
}

// unfinished refuses a directory whose restore has not ended.
func unfinished(dir string) error {
	_, err := os.Lstat(filepath.Join(dir, restoringFolder))
	switch {
	case err == nil:
		return fmt.Errorf("%s: a restore has not ended: repeat it", dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// placeOf is where a file of a backup belongs. A backup may come from anywhere: it names no other places.
func placeOf(name, dir, segments string) (string, error) {
	for _, known := range precious() {
		if name == known {
			return filepath.Join(dir, name), nil
		}
	}
	folder, base := filepath.Split(filepath.FromSlash(name))
	switch {
	case filepath.Clean(folder) != archiveFolder || base == "" || base != filepath.Base(base) || filepath.Ext(base) != ".segment":
		return "", fmt.Errorf("the backup names %q, which is no file of a store", name)
	case segments == "":
		return "", errors.New("the backup has segments of an archive, and no archive is configured")
	}
	return filepath.Join(segments, base), nil
}

// sound refuses a file whose pages contradict each other.
func sound(name string) (err error) {
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	answer := ""
	err = query(conn, "PRAGMA integrity_check(1)", func(s *sqlite.Stmt) bool { answer = s.ColumnText(0); return false })
	if err == nil && answer != "ok" {
		err = fmt.Errorf("the database is damaged: %s", answer)
	}
	return err
}
