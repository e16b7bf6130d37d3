package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const controlUsage = `esdouble control acts on a cluster that esdouble cluster runs:

  esdouble control [--at ADDRESS] status
      prints a line "N HOST:PORT STATE" for each node, and the esdb:// URL of all nodes as
      the last line; STATE is leader, follower, electing or dead
  esdouble control [--at ADDRESS] kill-node N
      stops node N at once; its connections break, its log stays
  esdouble control [--at ADDRESS] start-node N
      starts node N again, at the same address
  esdouble control [--at ADDRESS] resign N
      makes node N give up the lead; fails if N is not the leader

Tests drive a cluster through it with

  WATCHTOWER_TEST_ESDB_CLUSTER='esdouble control --at ADDRESS'`

// control sends one command to a cluster, and prints the answer.
func control(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newFlags("esdouble control", controlUsage, stdout)
	at := flags.String("at", defaultControl, "address of the cluster's control server")
	if err := parse(flags, args, true); err != nil {
		return err
	}
	method, path := http.MethodPost, ""
	switch command := flags.Arg(0); {
	case command == "status" && flags.NArg() == 1:
		method, path = http.MethodGet, "/status"
	case (command == "kill-node" || command == "start-node" || command == "resign") && flags.NArg() == 2:
		path = "/" + command + "/" + url.PathEscape(flags.Arg(1))
	default:
		return errors.New("give a command: status, kill-node N, start-node N or resign N (see --help)")
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+*at+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json") // a web page cannot send it without asking first
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close() //nolint:errcheck,gosec // it was read to its end
	switch {
	case err != nil:
		return err
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", strings.Join(flags.Args(), " "), strings.TrimSpace(string(text)))
	}
	_, err = stdout.Write(text)
	return err
}
