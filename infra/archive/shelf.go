package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/archive"
)

// Shelf is where segments lie: files that are written once and read for ever.
type Shelf interface {
	// Create begins a file, which takes the place of one of that name when it is committed.
	Create(ctx context.Context, name string) (Draft, error)
	// Open opens a file for reading; archive.ErrMissing if there is none.
	Open(ctx context.Context, name string) (Blob, error)
	// String names it to people.
	String() string
}

// Blob is a file that is read.
type Blob interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Dir is a shelf that is a folder.
type Dir string

func (d Dir) String() string { return string(d) }

// draftSuffix ends the names of files in the making. What a crash leaves of them is
// overwritten by the next try, which has the same name.
const draftSuffix = ".draft"

// Create makes the folder if it is not there.
func (d Dir) Create(_ context.Context, name string) (Draft, error) {
	if err := os.MkdirAll(string(d), 0o750); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(string(d), filepath.Base(name)+draftSuffix)) //nolint:gosec // the name is the archive's own
	if err != nil {
		return nil, err
	}
	return &fileDraft{File: f, dir: string(d)}, nil
}

// fileDraft is a file under another name.
type fileDraft struct {
	*os.File
	dir  string
	done bool
}

// Commit has the bytes on the disk before the file gets its name, and the name on the
// disk before it returns.
func (f *fileDraft) Commit() error {
	f.done = true
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), strings.TrimSuffix(f.Name(), draftSuffix))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (f *fileDraft) Discard() {
	if f.done {
		return
	}
	f.done = true
	f.Close()           //nolint:errcheck,gosec // it goes
	os.Remove(f.Name()) //nolint:errcheck,gosec // if it stays, the next try overwrites it
}

// Open opens a file of the folder.
func (d Dir) Open(_ context.Context, name string) (Blob, error) {
	f, err := os.Open(filepath.Join(string(d), filepath.Base(name))) //nolint:gosec // the name is the archive's own
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has no such file", archive.ErrMissing, d)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return fileBlob{f, info.Size()}, nil
}

type fileBlob struct {
	*os.File
	size int64
}

func (f fileBlob) Size() int64 { return f.size }
