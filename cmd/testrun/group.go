package main

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// endPatience is how long a command that was interrupted may take to end.
const endPatience = 20 * time.Second

// runGroup runs a command (made with a context) as the head of a process group of
// its own. When the context ends, the group is interrupted as Ctrl-C would do;
// when the command has ended, whatever it left running in the group is killed.
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

// signalGroup reaches every process of a group; an empty group is no error.
func signalGroup(leader int, sig syscall.Signal) error {
	if err := syscall.Kill(-leader, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
