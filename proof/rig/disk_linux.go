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

// Disk is an ext4 file system in a file, mounted over a loop device. Its power can be cut, and
// it can be filled up. It requires root.
//
// The file holds the data that has reached the device. Written but unflushed data is only in the
// kernel's memory, and not in a copy of the file.
type Disk struct {
	Dir string // mount point; accessible to every user

	folder, image, snapshot string
	mounted                 bool
}

// unmountPatience is the time for killed processes to end.
const unmountPatience = 20 * time.Second

// DiskPrograms are the programs that a Disk needs in PATH.
func DiskPrograms() []string { return []string{"mkfs.ext4", "mount", "umount", "cp", "sync"} }

// NewDisk creates and mounts a disk of a size in bytes; unused space takes no room.
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
	// Without blocks reserved for root, because root fills the disk too; and without a kernel
	// thread that keeps initializing the file system after mkfs.
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

// Snapshot copies the data that has reached the device: the disk's state after a power cut at
// this moment. Writers must be stopped meanwhile.
func (d *Disk) Snapshot(ctx context.Context) error {
	return run(ctx, "cp", "--sparse=always", d.image, d.snapshot)
}

// Restore replaces the disk by the snapshot, as after the power cut. The disk must not be in
// use.
func (d *Disk) Restore(ctx context.Context) error {
	if err := d.unmount(ctx); err != nil {
		return err
	}
	if err := os.Rename(d.snapshot, d.image); err != nil {
		return err
	}
	return d.mount(ctx)
}

// Sync flushes all data written so far: the initial state of a test.
func (d *Disk) Sync(ctx context.Context) error { return run(ctx, "sync", "-f", d.Dir) }

// Fill uses up the free space except leave bytes.
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
	for piece := int64(1 << 20); piece >= 512; piece /= 2 { // the last bytes are written in small pieces
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

// Free releases the space taken by Fill.
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

// run runs a program to its end; an error includes its output.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
