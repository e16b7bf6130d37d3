package tools

import (
	"context"
	"os/exec"
)

// Chromium is the system's browser only: its packages are too many to be unpacked here.
func (b Box) Chromium(ctx context.Context) (Tool, error) {
	return b.first(ctx, func(ctx context.Context, program string) (string, error) {
		line, err := answer(ctx, nil, program, "--version")
		return versionIn(line), err
	}, source{"system", func(context.Context) (string, error) { return exec.LookPath("chromium") }})
}
