package server

import "syscall"

// dieWithParent has the kernel end the server when the thread that started it is
// gone (prctl(2), PR_SET_PDEATHSIG), which for a Go program is when it was killed.
func dieWithParent(attr *syscall.SysProcAttr, end syscall.Signal) { attr.Pdeathsig = end }
