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
	toolsDir   = ".tools" // in the module's root, where testrun runs
	sourcesVar = "WATCHTOWER_TEST_SOURCES"
)

// backend is a server or program that tests need besides the Go toolchain.
type backend struct {
	name    string
	has     string // version and source; empty if missing
	missing string // reason
	vars    []string
}

// backends are all servers and programs.
type backends struct {
	list   []backend
	env    map[string]string
	remove []func() error // cleanup functions, newest last
	place  string         // directory of temporary folders; empty: the default
}

// bringUp finds and starts the available backends, with temporary files in place; an empty place
// is the default. A missing backend is not an error: the tests that need it report it. Call
// tearDown also after an error.
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
	all.program(ctx, "nats", testenv.NATSVar, box.NATS)
	all.program(ctx, "chromium", testenv.ChromiumVar, box.Chromium)
	all.program(ctx, "viem", testenv.ViemVar, box.Viem)
	all.program(ctx, "axe", testenv.AxeVar, box.Axe)
	all.program(ctx, "near-api-js", testenv.NEARVar, box.NEAR)
	all.program(ctx, "wallets", testenv.WalletsVar, box.Wallets)
	all.program(ctx, "cast", testenv.CastVar, box.Cast)
	all.program(ctx, "typescript", testenv.TypeScriptVar, box.TypeScript)
	all.program(ctx, "esbuild", testenv.EsbuildVar, box.Esbuild)
	all.program(ctx, "workerd", testenv.WorkerdVar, box.Workerd)
	all.program(ctx, "redocly", testenv.RedoclyVar, box.Redocly)
	return all, ctx.Err()
}

// folders gives the tests a folder for temporary files that is deleted at the end. The go
// command keeps the default folder: it stores a program of some 100 MB for each package until
// the last has run.
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

// settings lists the settings of a server in a variable's text.
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

// serve starts a server, unless its variable names one, and records the result.
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

// program records a tool that tests start themselves.
func (all *backends) program(ctx context.Context, name, variable string, find func(context.Context) (tools.Tool, error)) {
	b := backend{name: name, vars: []string{variable}}
	if tool, err := all.find(ctx, variable, find); err != nil {
		b.missing = err.Error()
	} else {
		b.has = describe(tool.Version, tool.Path)
	}
	all.list = append(all.list, b)
}

// describe joins the known facts of a backend.
func describe(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "  ")
}

// find returns the tool that a variable names; otherwise it searches for one, and sets the
// variable.
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

// environment is ours, plus the variables of infra/testenv and of the folders. A program with
// the race detector sleeps for a second before it ends, unless GORACE says otherwise, and there
// are more than a hundred of them.
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

// shorten makes paths relative to the current folder.
func shorten(text string) string {
	dir, err := os.Getwd()
	if err != nil {
		return text
	}
	return strings.ReplaceAll(text, dir+string(filepath.Separator), "")
}

// tearDown stops and removes everything, newest first.
func (all *backends) tearDown() error {
	var errs []error
	for i := len(all.remove) - 1; i >= 0; i-- {
		errs = append(errs, all.remove[i]())
	}
	all.remove = nil
	return errors.Join(errs...)
}
