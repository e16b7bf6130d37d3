package main

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/program/manual/manualtest"
)

var update = flag.Bool("update", false, "write docs/reference/cli-relayer.md")

func TestCommandsAreInTheReference(t *testing.T) {
	manualtest.Reference(t, command(strings.NewReader(""), io.Discard, io.Discard), "../../docs/reference/cli-relayer.md", *update)
}

func TestCommandsFollowTheRules(t *testing.T) {
	manualtest.Rules(t, command(strings.NewReader(""), io.Discard, io.Discard), map[string]string{
		"request":               "it prints an id and a status a line",
		"serve":                 "it logs",
		"forward":               "it publishes to a broker",
		"migrate":               "it changes schemas",
		"restored":              "its status tells",
		"keys revoke":           "its status tells",
		"healthcheck":           "its status tells",
		"config schema":         "it prints a JSON Schema",
		"groups cancel-message": "it prints typed data in JSON, to be signed",
		"context add":           "its status tells",
		"context use":           "its status tells",
		"context remove":        "its status tells",
	})
}
