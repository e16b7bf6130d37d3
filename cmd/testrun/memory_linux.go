package main

import "golang.org/x/sys/unix"

const (
	memoryPlace = "/dev/shm"
	// memoryNeeded is four times the maximum size of the tests' temporary files: databases, and
	// programs built with the race detector.
	memoryNeeded = 8 << 30 // bytes
)

// inMemory returns an in-memory folder with enough space in which programs may run; empty if
// there is none.
//
// A test with its own database creates and deletes some 300 files. On ext4 that took a third of
// the tests' time: it searches recently freed inodes before it takes one (recently_deleted in
// fs/ext4/ialloc.c of Linux).
func inMemory() string {
	var fs unix.Statfs_t
	if unix.Statfs(memoryPlace, &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
		return ""
	}
	if fs.Flags&unix.ST_NOEXEC != 0 || fs.Flags&unix.ST_RDONLY != 0 || fs.Bavail*uint64(fs.Bsize) < memoryNeeded {
		return ""
	}
	return memoryPlace
}
