package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// debian unpacks a package, and its libraries that are not installed, into Dir/debian-name.
// Nothing is installed, no root is needed. The package lists are fetched again, since the
// machine's may be missing or outdated.
func (b Box) debian(ctx context.Context, name string, whole func(dir string) bool) (string, error) {
	return b.fetch(ctx, "debian-"+name, whole, func(ctx context.Context, dir string) error {
		for _, program := range []string{"apt-get", "apt-cache", "dpkg", "dpkg-query"} {
			if _, err := exec.LookPath(program); err != nil {
				return fmt.Errorf("no %s here (%s)", program, runtime.GOOS)
			}
		}
		apt, err := newAPT(filepath.Join(dir, "apt"))
		if err != nil {
			return err
		}
		wanted, err := apt.missing(ctx, name)
		if err != nil {
			return err
		}
		if err := apt.unpack(ctx, wanted, dir); err != nil {
			return err
		}
		return os.RemoveAll(apt.dir)
	})
}

// apt keeps its state in its own folder; only the list of installed packages is the machine's.
type apt struct {
	dir     string
	options []string
}

func newAPT(dir string) (apt, error) {
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial", "debs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return apt{}, err
		}
	}
	return apt{dir: dir, options: []string{
		"-o", "Dir::State=" + filepath.Join(dir, "state"),
		"-o", "Dir::State::status=/var/lib/dpkg/status",
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "APT::Sandbox::User=", // the folder need not be open to apt's user
		"-q",
	}}, nil
}

// missing names the packages to unpack for one: of all its transitive dependencies the libraries
// that are not installed, and the versioned package behind it (postgresql-15 for postgresql).
func (a apt) missing(ctx context.Context, name string) ([]string, error) {
	if _, err := run(ctx, a.dir, "apt-get", append(a.options, "update")...); err != nil {
		return nil, err
	}
	out, err := run(ctx, a.dir, "apt-cache", append(a.options, "depends", "--recurse", "--no-recommends", "--no-suggests",
		"--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", name)...)
	if err != nil {
		return nil, err
	}
	listed, err := run(ctx, a.dir, "dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n")
	if err != nil {
		return nil, err
	}
	return choosePackages(name, out, listed)
}

// never are libraries that every machine has, or that a server started by us does not load: the
// query compiler, Perl, the installer's dialogues.
var never = regexp.MustCompile(`^(libc6|libc-bin|libllvm.*|libz3.*|lib.*-?perl.*|libpython.*|libdebian-installer.*|libnewt.*|libslang.*)$`)

// choosePackages reads the output of apt-cache depends and dpkg-query.
func choosePackages(name string, depends, listed []byte) ([]string, error) {
	installed := map[string]bool{}
	for line := range strings.Lines(string(listed)) {
		if pkg, status, _ := strings.Cut(strings.TrimSpace(line), " "); status == "installed" {
			installed[pkg] = true
		}
	}
	// The server itself, under its versioned name, is unpacked even if installed: no complete
	// one was found. redis-server needs redis-tools, which contains its program.
	server := regexp.MustCompile("^(" + regexp.QuoteMeta(name) + `(-[0-9.]+)?|redis-tools)$`)
	var chosen []string
	lines := bufio.NewScanner(bytes.NewReader(depends))
	for lines.Scan() {
		pkg := lines.Text()
		if pkg == "" || strings.ContainsAny(pkg, " <|:") {
			continue // dependencies are indented; virtual packages are in <>
		}
		library := strings.HasPrefix(pkg, "lib") || strings.HasPrefix(pkg, "lua-")
		if server.MatchString(pkg) || library && !never.MatchString(pkg) && !installed[pkg] {
			chosen = append(chosen, pkg)
		}
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	if !slices.ContainsFunc(chosen, server.MatchString) {
		return nil, fmt.Errorf("apt-cache does not know %s", name)
	}
	return chosen, nil
}

func (a apt) unpack(ctx context.Context, packages []string, into string) error {
	debs := filepath.Join(a.dir, "debs")
	if _, err := run(ctx, debs, "apt-get", append(append(slices.Clone(a.options), "download"), packages...)...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("apt-get download left nothing")
	}
	for _, deb := range files {
		if _, err := run(ctx, into, "dpkg", "-x", deb, into); err != nil {
			return err
		}
	}
	return nil
}
