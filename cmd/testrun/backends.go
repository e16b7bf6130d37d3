package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tempo-watchtower/watchtower/cmd/internal/tools"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

const (
	toolsDir   = ".tools" // in the module's root, where testrun is run
	sourcesVar = "WATCHTOWER_TEST_SOURCES"
)

// backend is one part that tests need besides the Go toolchain.
type backend struct {
	name    string
	has     string // version and place; empty when missing
	missing string // why
	vars    []string
}

// backends are all of them.
type backends struct {
	list   []backend
	env    map[string]string
	remove []func() error // newest last
	place  string         // where folders are made; empty for the usual place
}

// bringUp finds and starts what it can, with everything temporary in a place that may be
// empty for the usual one. A part that cannot be had is no error: the tests that need it
// say so. Call tearDown also after an error.
func bringUp(ctx context.Context, place string, say io.Writer) (*backends, error) {
	all := &backends{env: map[string]string{}, place: place}
	if err := all.folders(); err != nil {
		return all, err
	}
	box := tools.Box{Dir: toolsDir, Say: say}
	if sources := os.Getenv(sourcesVar); sources != "" {
		box.Sources = strings.Split(sources, ",")
	}
	all.postgres(ctx, box)
	all.redis(ctx, box)
	all.program(ctx, "anvil", testenv.AnvilVar, box.Anvil)
	all.program(ctx, "geth", testenv.GethVar, box.Geth)
	all.program(ctx, "chromium", testenv.ChromiumVar, box.Chromium)
	all.program(ctx, "viem", testenv.ViemVar, box.Viem)
	all.program(ctx, "typescript", testenv.TypeScriptVar, box.TypeScript)
	return all, ctx.Err()
}

// folders has what runs with these backends lay its temporary files in a folder that goes
// when we do. Those of the go command stay in the usual place: it keeps a program of some
// 100 MB for each package until the last has run.
func (all *backends) folders() error {
	variables := map[string]string{"TMPDIR": all.place}
	if all.place != "" && os.Getenv("GOTMPDIR") == "" {
		variables["GOTMPDIR"] = ""
	}
	for variable, place := range variables {
		dir, err := os.MkdirTemp(place, "wt-test-")
		if err != nil {
			return err
		}
		all.remove = append(all.remove, func() error { return os.RemoveAll(dir) })
		all.env[variable] = dir
		if err := os.Chmod(dir, 0o755); err != nil { // servers of tests run as other users
			return err
		}
	}
	return nil
}

func (all *backends) postgres(ctx context.Context, box tools.Box) {
	bin, err := all.find(ctx, testenv.PostgresBinVar, box.Postgres)
	all.serve("postgres", testenv.PostgresVar, testenv.PostgresBinVar, bin, err, func() (string, error) {
		p, err := server.NewPostgresWith(ctx, bin.Path, server.PostgresOptions{
			Parent: all.place, Settings: settings(os.Getenv(testenv.PostgresSettingsVar)),
		})
		if err != nil {
			return "", err
		}
		all.remove = append(all.remove, p.Remove)
		err = p.Start(ctx)
		return p.URL(), err
	})
}

// settings are those of a server in a variable's text.
func settings(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func (all *backends) redis(ctx context.Context, box tools.Box) {
	program, err := all.find(ctx, testenv.RedisBinVar, box.Redis)
	all.serve("redis", testenv.RedisVar, testenv.RedisBinVar, program, err, func() (string, error) {
		r, err := server.NewRedis(program.Path)
		if err != nil {
			return "", err
		}
		all.remove = append(all.remove, r.Remove)
		err = r.Start(ctx)
		return r.URL(), err
	})
}

// serve starts a server, unless its variable names one, and notes what came of it.
func (all *backends) serve(name, urlVar, binVar string, tool tools.Tool, err error, start func() (string, error)) {
	b := backend{name: name, vars: []string{urlVar, binVar}}
	defer func() { all.list = append(all.list, b) }()
	if os.Getenv(urlVar) != "" {
		b.has = describe("given by "+urlVar, tool.Path) // the URL may hold a password
		return
	}
	var url string
	if err == nil {
		url, err = start()
	}
	if err != nil {
		b.missing = err.Error()
		return
	}
	all.env[urlVar] = url
	b.has = describe(tool.Version, tool.Path, url)
}

// program notes a tool that tests start by themselves.
func (all *backends) program(ctx context.Context, name, variable string, find func(context.Context) (tools.Tool, error)) {
	b := backend{name: name, vars: []string{variable}}
	if tool, err := all.find(ctx, variable, find); err != nil {
		b.missing = err.Error()
	} else {
		b.has = describe(tool.Version, tool.Path)
	}
	all.list = append(all.list, b)
}

// describe joins what is known of a backend.
func describe(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "  ")
}

// find takes the tool that a variable names, else looks for one and has the
// variable name it.
func (all *backends) find(ctx context.Context, variable string, find func(context.Context) (tools.Tool, error)) (tools.Tool, error) {
	if path := os.Getenv(variable); path != "" {
		return tools.Tool{Path: path, From: variable}, nil
	}
	tool, err := find(ctx)
	if err != nil {
		return tool, err
	}
	all.env[variable] = tool.Path
	return tool, nil
}

// environment is ours, with the variables of infra/testenv and those of the folders. A
// program with the race detector sleeps for a second before it ends, unless GORACE says
// otherwise, and there are more than a hundred of them.
func (all *backends) environment() []string {
	env := append([]string{"GORACE=atexit_sleep_ms=0"}, os.Environ()...)
	for name, value := range all.env {
		env = append(env, name+"="+value)
	}
	return env
}

func (all *backends) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range all.list {
		text := "MISSING: " + b.missing
		if b.has != "" {
			text = shorten(b.has)
		}
		fmt.Fprintf(table, "  %s\t%s\n", b.name, text)
	}
	table.Flush() //nolint:errcheck // a report that cannot be written cannot be reported
}

// shorten names paths from the current folder.
func shorten(text string) string {
	dir, err := os.Getwd()
	if err != nil {
		return text
	}
	return strings.ReplaceAll(text, dir+string(filepath.Separator), "")
}

// tearDown stops and removes everything, the newest first.
func (all *backends) tearDown() error {
	var errs []error
	for i := len(all.remove) - 1; i >= 0; i-- {
		errs = append(errs, all.remove[i]())
	}
	all.remove = nil
	return errors.Join(errs...)
}
