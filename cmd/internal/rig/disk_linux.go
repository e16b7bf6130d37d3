package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Disk is an ext4 file system in a file, mounted over a loop device: its power can
// be cut, and it can run full. Only root can have one.
//
// The file holds what has reached the device. What programs wrote and nobody
// flushed is in the kernel's memory alone, and not in a copy of the file.
type Disk struct {
	Dir string // where it is mounted; every user may pass through

	folder, image, snapshot string
	mounted                 bool
}

// unmountPatience is for processes that were killed and have not ended yet.
const unmountPatience = 20 * time.Second

// DiskPrograms are what a Disk needs in PATH.
func DiskPrograms() []string { return []string{"mkfs.ext4", "mount", "umount", "cp", "sync"} }

// NewDisk makes and mounts a disk of some size; what is not used takes no space.
func NewDisk(ctx context.Context, bytes int64) (*Disk, error) {
	folder, err := os.MkdirTemp("", "wt-disk-")
	if err != nil {
		return nil, err
	}
	d := &Disk{
		Dir: filepath.Join(folder, "mnt"), folder: folder,
		image: filepath.Join(folder, "image"), snapshot: filepath.Join(folder, "snapshot"),
	}
	if err := d.make(ctx, bytes); err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	return d, nil
}

func (d *Disk) make(ctx context.Context, bytes int64) error {
	if err := errors.Join(os.Chmod(d.folder, 0o755), os.Mkdir(d.Dir, 0o755)); err != nil { // servers run as other users
		return err
	}
	if err := run(ctx, "truncate", "-s", strconv.FormatInt(bytes, 10), d.image); err != nil {
		return err
	}
	// Nothing is kept back for root, who fills it up too, and no thread of the kernel
	// goes on making the file system after mkfs.
	if err := run(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.image); err != nil {
		return err
	}
	if err := d.mount(ctx); err != nil {
		return err
	}
	return os.Chmod(d.Dir, 0o777)
}

func (d *Disk) mount(ctx context.Context) error {
	err := run(ctx, "mount", "-o", "loop", d.image, d.Dir)
	d.mounted = err == nil
	return err
}

// Snapshot keeps what has reached the device, as it would be found after a power cut
// now. Whoever writes to the disk must stand still meanwhile.
func (d *Disk) Snapshot(ctx context.Context) error {
	return run(ctx, "cp", "--sparse=always", d.image, d.snapshot)
}

// Restore puts the snapshot in the disk's place: the power is back. Nobody may use
// the disk.
func (d *Disk) Restore(ctx context.Context) error {
	if err := d.unmount(ctx); err != nil {
		return err
	}
	if err := os.Rename(d.snapshot, d.image); err != nil {
		return err
	}
	return d.mount(ctx)
}

// Sync flushes all that was written so far: the state from which a test begins.
func (d *Disk) Sync(ctx context.Context) error { return run(ctx, "sync", "-f", d.Dir) }

// Fill takes all the space that is left, but for some bytes.
func (d *Disk) Fill(leave int64) error {
	var free syscall.Statfs_t
	if err := syscall.Statfs(d.Dir, &free); err != nil {
		return err
	}
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()                                         //nolint:errcheck // it is only in the way of others
	left := int64(free.Bavail)*free.Bsize - leave           //nolint:gosec // far below 2^63
	for piece := int64(1 << 20); piece >= 512; piece /= 2 { // the last bytes go in small pieces
		for ; left >= piece; left -= piece {
			if _, err := f.Write(make([]byte, piece)); errors.Is(err, syscall.ENOSPC) {
				break
			} else if err != nil {
				return err
			}
		}
	}
	return f.Sync()
}

// Free gives back what Fill took.
func (d *Disk) Free() error { return os.Remove(d.ballast()) }

func (d *Disk) ballast() string { return filepath.Join(d.Dir, "ballast") }

func (d *Disk) unmount(ctx context.Context) error {
	if !d.mounted {
		return nil
	}
	d.mounted = false
	ctx, cancel := context.WithTimeout(ctx, unmountPatience)
	defer cancel()
	for {
		err := run(ctx, "umount", d.Dir)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pollEvery):
		}
	}
}

// Remove unmounts the disk and deletes it.
func (d *Disk) Remove() error {
	return errors.Join(d.unmount(context.Background()), os.RemoveAll(d.folder))
}

// run runs a program to its end; an error tells what it printed.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
