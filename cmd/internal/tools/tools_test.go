package tools

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersionIn(t *testing.T) {
	for line, want := range map[string]string{
		"v20.19.2": "20.19.2",
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)":       "15.18",
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0": "7.0.15",
		"anvil Version: 1.7.1-stable":                                "1.7.1",
		"no number here":                                             "no number here",
	} {
		if got := versionIn(line); got != want {
			t.Errorf("versionIn(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestSystemPostgresIsTheNewestWithAServer(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"9.6/bin/initdb", "9.6/bin/postgres", "15/bin/initdb", "15/bin/postgres", "17/bin/psql"} {
		write(t, filepath.Join(root, file), "#!/bin/sh\n", 0o755)
	}
	folders, err := filepath.Glob(filepath.Join(root, "*/bin"))
	if err != nil {
		t.Fatal(err)
	}
	newestFirst(folders)
	got, err := withServer(folders)
	if want := filepath.Join(root, "15/bin"); err != nil || got != want {
		t.Errorf("chose %s, %v; want %s", got, err, want)
	}
	if _, err := withServer(folders[:1]); err == nil {
		t.Error("a folder with only the client counts as a server")
	}
}

func TestChoosePackages(t *testing.T) {
	depends := `postgresql
  Depends: postgresql-15
postgresql-15
  Depends: libpq5
 |Depends: debconf
    cdebconf
  Depends: <debconf-2.0>
<debconf-2.0>
libpq5
libicu72
libllvm14
libperl5.36
libfile-find-rule-perl
libc6
libssl3
libssl3:i386
postgresql-client-15
perl
`
	listed := "libssl3 installed\nlibicu72 config-files\npostgresql-15 installed\n"
	got, err := choosePackages("postgresql", []byte(depends), []byte(listed))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"libicu72", "libpq5", "postgresql", "postgresql-15"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := choosePackages("redis-server", nil, []byte(listed)); err == nil {
		t.Error("a package unknown to apt-cache is no error")
	}
}

func TestPinsAskForTheExactVersion(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "node_modules/@a/b/package.json"), `{"version":"1.7.1"}`, 0o644)
	write(t, filepath.Join(dir, "node_modules/c/package.json"), `{"version":"2.0.0"}`, 0o644)
	for _, c := range []struct {
		want pins
		in   bool
	}{
		{pins{"@a/b": "1.7.1"}, true},
		{pins{"@a/b": "1.7.1", "c": "2.0.0"}, true},
		{pins{"@a/b": "1.7.1", "c": "2.0.1"}, false},
		{pins{"d": "1.0.0"}, false},
	} {
		if got := c.want.in(dir); got != c.in {
			t.Errorf("%v in the folder: %v, want %v", c.want, got, c.in)
		}
	}
}

func TestLinkLibrariesStaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "lib/libicu.so.60.2"), "library", 0o644)
	write(t, filepath.Join(dir, "pg-symlinks.json"),
		`[{"source":"native/lib/libicu.so.60.2","target":"native/lib/libicu.so.60"}]`, 0o644)
	for range 2 { // the links are made again each time
		if err := linkLibraries(dir); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "lib/libicu.so.60")); err != nil || string(text) != "library" {
		t.Errorf("through the link: %q, %v", text, err)
	}
	write(t, filepath.Join(dir, "pg-symlinks.json"),
		`[{"source":"native/lib/libicu.so.60.2","target":"../outside"}]`, 0o644)
	if err := linkLibraries(dir); err == nil {
		t.Error("a link outside the package was made")
	}
}

func TestFetchIsWholeOrNotAtAll(t *testing.T) {
	b := Box{Dir: filepath.Join(t.TempDir(), "tools"), Say: io.Discard}
	whole := func(dir string) bool { return isProgram(filepath.Join(dir, "tool")) }
	broken := errors.New("the line is down")
	for name, make := range map[string]func(context.Context, string) error{
		"fails midway": func(_ context.Context, dir string) error {
			write(t, filepath.Join(dir, "tool"), "", 0o755)
			return broken
		},
		"lacks the tool": func(_ context.Context, dir string) error {
			write(t, filepath.Join(dir, "other"), "", 0o755)
			return nil
		},
	} {
		if _, err := b.fetch(t.Context(), "t", whole, make); err == nil {
			t.Errorf("%s: no error", name)
		}
		if whole(filepath.Join(b.Dir, "t")) {
			t.Errorf("%s: the folder is there", name)
		}
	}
	var made atomic.Int32
	make := func(_ context.Context, dir string) error {
		made.Add(1)
		write(t, filepath.Join(dir, "tool"), "", 0o755)
		return nil
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if dir, err := b.fetch(t.Context(), "t", whole, make); err != nil || !whole(dir) {
				t.Errorf("fetch = %s, %v", dir, err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("fetched %d times, want once", made.Load())
	}
}

func TestFirstTellsWhyEachSourceFailed(t *testing.T) {
	version := func(_ context.Context, path string) (string, error) {
		if path == "old" {
			return "", errors.New("too old")
		}
		return "2.0", nil
	}
	has := func(path string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return path, nil }
	}
	none := func(context.Context) (string, error) { return "", errors.New("not there") }
	got, err := Box{}.first(t.Context(), version, source{"system", has("old")}, source{"debian", none}, source{"npm", has("new")})
	if want := (Tool{Path: "new", Version: "2.0", From: "npm"}); err != nil || got != want {
		t.Errorf("first = %+v, %v; want %+v", got, err, want)
	}
	_, err = Box{Sources: []string{"system", "debian"}}.first(t.Context(), version, source{"system", has("old")}, source{"debian", none}, source{"npm", has("new")})
	for _, why := range []string{"system: too old", "debian: not there", "npm: not allowed"} {
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("the error %v does not say %q", err, why)
		}
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
