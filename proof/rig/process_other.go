//go:build !linux

package rig

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
