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

// Shelf is the storage of segments: files that are written once and kept.
type Shelf interface {
	// Create begins a file. Its commit replaces a file of the same name.
	Create(ctx context.Context, name string) (Draft, error)
	// Open opens a file for reading; archive.ErrMissing if it does not exist.
	Open(ctx context.Context, name string) (Blob, error)
	// String names the shelf for people.
	String() string
}

// Blob is a file open for reading.
type Blob interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Dir is a shelf in a folder.
type Dir string

func (d Dir) String() string { return string(d) }

// draftSuffix is the suffix of unfinished files. The next try has the same name and overwrites
// a crash's remains.
const draftSuffix = ".draft"

// Create also makes the folder if it is missing.
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

// fileDraft is a file under a temporary name.
type fileDraft struct {
	*os.File
	dir  string
	done bool
}

// Commit syncs the file before renaming it, and the folder before it returns.
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

// Open opens a file in the folder.
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
