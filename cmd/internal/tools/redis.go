package tools

import (
	"context"
	"os/exec"
	"path/filepath"

	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// Redis is the program redis-server. Neither npm nor Go has it, so on a machine without it and
// without Debian's packages it is unavailable.
func (b Box) Redis(ctx context.Context) (Tool, error) {
	return b.first(ctx, redisAnswers,
		source{"system", func(context.Context) (string, error) { return exec.LookPath("redis-server") }},
		source{"debian", b.redisFromDebian},
	)
}

func redisAnswers(ctx context.Context, program string) (string, error) {
	line, err := answer(ctx, server.Libraries(program), program, "--version")
	return versionIn(line), err
}

func (b Box) redisFromDebian(ctx context.Context) (string, error) {
	program := func(tree string) string { return filepath.Join(tree, "usr/bin/redis-server") }
	tree, err := b.debian(ctx, "redis-server", func(dir string) bool { return isProgram(program(dir)) })
	return program(tree), err
}
