package rig

import "syscall"

// dieWithParent makes the child end with us, however we end.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
