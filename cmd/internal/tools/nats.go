package tools

import (
	"context"
	"os/exec"
)

// natsVersion is the version of the server that messages are published to in tests.
const natsVersion = "v2.15.2"

// NATS is the NATS server: the system's, or one built here.
func (b Box) NATS(ctx context.Context) (Tool, error) {
	return b.first(ctx, natsAnswers,
		source{"system", func(context.Context) (string, error) { return exec.LookPath("nats-server") }},
		source{"go", b.natsFromGo},
	)
}

func natsAnswers(ctx context.Context, path string) (string, error) {
	line, err := answer(ctx, nil, path, "--version")
	return versionIn(line), err
}

func (b Box) natsFromGo(ctx context.Context) (string, error) {
	return b.fromGo(ctx, "nats", "nats-server", "github.com/nats-io/nats-server/v2@"+natsVersion)
}
