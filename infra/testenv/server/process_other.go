//go:build !linux

package server

import "syscall"

// dieWithParent cannot be had here: a killed test leaves its server behind.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
