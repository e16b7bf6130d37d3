package main

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// endPatience is the time for an interrupted command to end.
const endPatience = 20 * time.Second

// runGroup runs a command (built with a context) as the leader of its own process group. When
// the context ends, it interrupts the group as Ctrl-C would. When the command has ended, it
// kills the group's remaining processes.
func runGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = endPatience
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	return errors.Join(err, signalGroup(cmd.Process.Pid, syscall.SIGKILL))
}

// signalGroup signals every process of a group; an empty group is not an error.
func signalGroup(leader int, sig syscall.Signal) error {
	if err := syscall.Kill(-leader, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
