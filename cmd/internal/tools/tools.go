// Package tools finds the programs that tests and the playground run besides our own: Postgres,
// Redis, anvil, viem. Missing ones are fetched into a folder of the clone, never into the
// system.
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
	fetchPatience  = 5 * time.Minute // for one download, including unpacking
	answerPatience = 20 * time.Second
)

// Box finds tools, and keeps the tools that it fetched.
type Box struct {
	Dir string    // folder of fetched tools; created when needed
	Say io.Writer // receives one line per fetched tool
	// Sources, when not empty, limits the sources of tools, named as in Tool.From.
	Sources []string
}

// Tool is a program, or a folder of programs, that exists and responds.
type Tool struct {
	Path    string // absolute
	Version string
	From    string // "system", "debian", "npm" or "go"
}

// source is one source of a tool. find uses no network if the tool is there already.
type source struct {
	name string
	find func(context.Context) (path string, err error)
}

// first returns the tool of the first source that has it; the error lists each source's failure.
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

// fetch creates Dir/name by calling make with an empty folder, unless whole reports that it
// exists. The folder appears completely or not at all. Two programs that fetch the same do so
// one after the other.
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
	if whole(dir) { // another program fetched it meanwhile
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
		return "", fmt.Errorf("the download of %s is incomplete or wrong; see the files in %s", name, half)
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

// run runs a program; a failure includes its output.
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

// answer is the first line that a program prints for a short query.
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
