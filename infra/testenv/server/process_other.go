//go:build !linux

package server

import "syscall"

// dieWithParent does nothing on this system: a killed test leaves its server running.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
