package tools

import (
	"context"
	"os/exec"
	"path/filepath"
)

// gethVersion is the newest version that builds from Go's module proxy.
const gethVersion = "v1.16.7"

// Geth is go-ethereum's node: the system's, or one built here, which takes minutes the first
// time.
func (b Box) Geth(ctx context.Context) (Tool, error) {
	return b.first(ctx, gethAnswers,
		source{"system", func(context.Context) (string, error) { return exec.LookPath("geth") }},
		source{"go", b.gethFromGo},
	)
}

func gethAnswers(ctx context.Context, path string) (string, error) {
	line, err := answer(ctx, nil, path, "--version")
	return versionIn(line), err
}

func (b Box) gethFromGo(ctx context.Context) (string, error) {
	return b.fromGo(ctx, "geth", "geth", "github.com/ethereum/go-ethereum/cmd/geth@"+gethVersion)
}

// fromGo builds a program of a module into a folder of its own, once, and returns its path.
func (b Box) fromGo(ctx context.Context, folder, name, source string) (string, error) {
	program := func(dir string) string { return filepath.Join(dir, name) }
	dir, err := b.fetch(ctx, folder, func(dir string) bool { return isProgram(program(dir)) }, func(ctx context.Context, dir string) error {
		_, err := run(ctx, dir, "env", "GOBIN="+dir, "GOFLAGS=", "go", "install", source)
		return err
	})
	return program(dir), err
}
