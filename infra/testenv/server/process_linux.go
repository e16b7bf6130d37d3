package server

import "syscall"

// dieWithParent makes the kernel send the server the signal end when the thread that started it
// ends (prctl(2), PR_SET_PDEATHSIG). In a Go program that happens when it is killed.
func dieWithParent(attr *syscall.SysProcAttr, end syscall.Signal) { attr.Pdeathsig = end }
