// Package tools finds the programs that tests and the playground run besides our
// own: Postgres, Redis, anvil, viem. What the machine does not have is fetched
// into a folder of the clone, never into the system.
package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	fetchPatience  = 5 * time.Minute // for one download, with its unpacking
	answerPatience = 20 * time.Second
)

// Box looks for tools, and keeps the ones it had to fetch.
type Box struct {
	Dir string    // where fetched tools lie; made when needed
	Say io.Writer // told, a line each, what is being fetched
	// Sources, when not empty, limits where tools may come from: the names that
	// Tool.From has.
	Sources []string
}

// Tool is a program, or a folder of programs, that is there and answers.
type Tool struct {
	Path    string // absolute
	Version string
	From    string // "system", "debian", "npm" or "go"
}

// source is one place to have a tool from. find uses no network when the tool is
// there already.
type source struct {
	name string
	find func(context.Context) (path string, err error)
}

// first takes the first source that has the tool; the error tells why none has.
func (b Box) first(ctx context.Context, version func(ctx context.Context, path string) (string, error), sources ...source) (Tool, error) {
	var why []string
	for _, s := range sources {
		if !b.allows(s.name) {
			why = append(why, s.name+": not allowed")
			continue
		}
		path, err := s.find(ctx)
		if err == nil {
			var v string
			if v, err = version(ctx, path); err == nil {
				return Tool{Path: path, Version: v, From: s.name}, nil
			}
		}
		why = append(why, s.name+": "+err.Error())
	}
	return Tool{}, errors.New(strings.Join(why, "; "))
}

func (b Box) allows(source string) bool {
	return len(b.Sources) == 0 || slices.Contains(b.Sources, source)
}

// fetch makes Dir/name by calling make with an empty folder, unless whole says
// that it is there already. The folder appears whole or not at all, and two
// programs that fetch the same do it one after the other.
func (b Box) fetch(ctx context.Context, name string, whole func(dir string) bool, make func(ctx context.Context, dir string) error) (string, error) {
	dir, err := filepath.Abs(filepath.Join(b.Dir, name))
	if err != nil {
		return "", err
	}
	if whole(dir) {
		return dir, nil
	}
	unlock, err := lock(b.Dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if whole(dir) { // somebody else's work meanwhile
		return dir, nil
	}
	fmt.Fprintf(b.Say, "fetching %s into %s\n", name, dir)
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	half := dir + ".half"
	if err := os.RemoveAll(half); err != nil {
		return "", err
	}
	if err := os.MkdirAll(half, 0o755); err != nil { // servers run as other users
		return "", err
	}
	if err := make(ctx, half); err != nil {
		return "", errors.Join(err, os.RemoveAll(half))
	}
	if !whole(half) {
		return "", fmt.Errorf("what was fetched for %s is not what was asked for; it is left in %s", name, half)
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Rename(half, dir)
}

// lock waits until no other program fetches into the same folder.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { // servers run as other users
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil //nolint:errcheck // closing lets go of the lock
}

// run executes a program; a failure tells what it printed.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = answerPatience
	var out, both bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, &both)
	cmd.Stderr = &both
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, lastLines(both.String(), 5))
	}
	return out.Bytes(), nil
}

// answer is the first line a program prints when asked a short question.
func answer(ctx context.Context, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s does not run: %w", name, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
