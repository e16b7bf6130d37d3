package main

import "golang.org/x/sys/unix"

const (
	memoryPlace = "/dev/shm"
	// memoryNeeded is what the tests lay there at most, four times over: databases, and
	// programs built with the race detector.
	memoryNeeded = 8 << 30 // bytes
)

// inMemory is a folder that lies in memory and in which programs may run; empty if there
// is none with room enough.
//
// A test that has a database of its own makes and deletes some 300 files. On ext4 that was
// a third of all the time the tests took: it looks through the inodes that were freed of
// late before it takes one (recently_deleted in fs/ext4/ialloc.c of Linux).
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
