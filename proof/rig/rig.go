// Package rig runs the built service as its users do, beside real chains, and judges it from
// outside: by client responses, broadcasts to nodes, and the chain's executions. Process tests
// and benchmarks use it.
package rig

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// Build compiles the service into a folder and returns the program's path.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	return BuildProgram(ctx, dir, "watchtower", flags...)
}

// BuildProgram compiles a program of directory cmd into a folder and returns its path.
func BuildProgram(ctx context.Context, dir, name string, flags ...string) (string, error) {
	program := filepath.Join(dir, name)
	args := append([]string{"build", "-o", program}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/tempo-watchtower/watchtower/cmd/"+name)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}

// CrashProgram returns the path of a program of directory cmd with crash points: the file in the
// folder named by [testenv.ProgramsVar], or else a new build in dir. The build has the race
// detector if race or [testenv.RaceVar] is set: it is then several times as slow.
func CrashProgram(ctx context.Context, dir, name string, race bool) (string, error) {
	prebuilt := os.Getenv(testenv.ProgramsVar)
	switch {
	case prebuilt == "" && (race || os.Getenv(testenv.RaceVar) != ""):
		dir = filepath.Join(dir, "race")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", err
		}
		// Not for SQLite, which is C translated to Go and ten times as slow under the detector.
		return BuildProgram(ctx, dir, name, "-race", "-gcflags=modernc.org/...=-race=false", "-tags", "crash")
	case prebuilt == "":
		return BuildProgram(ctx, dir, name, "-tags", "crash")
	}
	program, err := filepath.Abs(filepath.Join(prebuilt, name))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%s names a folder without the program: %w", testenv.ProgramsVar, err)
	}
	return program, nil
}

// environment is this process's environment, for programs under test: they collect garbage as in
// production, unlike the tests (cmd/testrun).
func environment() []string { return append(os.Environ(), "GOGC=100") }

// Service is one process of the built program.
type Service struct {
	Program string
	Args    []string // after "serve"
	Env     []string // added to the process's own environment
	Log     string   // file to which its output is appended
	Wrap    []string // command that runs the program, such as [Island.Wrap]; it must replace itself by the program
	Listen  string   // listen address of its API; empty: a free port, different each time

	URL     string // URL of its API, once started
	Metrics string // address of its metrics

	cmd   *exec.Cmd
	from  int64 // offset in the log at which this start begins
	ended chan struct{}
	err   error // result of Wait, once ended
}

// Start runs the service on free ports and waits until it is ready.
func (s *Service) Start(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.Ready(ctx)
}

// Launch runs the service without waiting for it.
func (s *Service) Launch() error {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	if info, err := log.Stat(); err == nil {
		s.from = info.Size()
	}
	args := append([]string{"serve", "--listen", cmp.Or(s.Listen, "127.0.0.1:0"), "--metrics-listen", "127.0.0.1:0", "--log-format", "json"}, s.Args...)
	line := append(append(slices.Clone(s.Wrap), s.Program), args...)
	s.cmd = exec.Command(line[0], line[1:]...) //nolint:noctx // ended by Stop or Kill, which wait
	s.cmd.Env = append(environment(), s.Env...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = dieWithParent()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.ended, s.URL, s.Metrics = ended, "", ""
	go func() {
		s.err = s.cmd.Wait()
		close(ended)
	}()
	return nil
}

// pollEvery is the polling interval where no event can be awaited.
const pollEvery = 20 * time.Millisecond

// Ready waits until /readyz succeeds.
func (s *Service) Ready(ctx context.Context) error {
	for {
		if s.URL == "" {
			s.URL, s.Metrics = s.listening()
		}
		if s.URL != "" {
			if r, err := ask(ctx, http.MethodGet, s.URL+"/readyz", nil, nil); err == nil && r.code == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the service ended before it was ready: %w\n%s", s.err, s.Tail())
		case <-ctx.Done():
			return fmt.Errorf("the service is not ready: %w\n%s", ctx.Err(), s.Tail())
		case <-time.After(pollEvery):
		}
	}
}

// listening reads the addresses from the log of this start.
func (s *Service) listening() (api, metrics string) {
	var entry struct{ API, Metrics string }
	s.Said("listening", &entry)
	return entry.API, entry.Metrics
}

// Said reads the first line of this start's log with a message. said reports whether it exists.
func (s *Service) Said(msg string, into any) (said bool) {
	for line := range s.Logged(msg) {
		if said = json.Unmarshal(line, into) == nil; said {
			break
		}
	}
	return said
}

// Logged yields the lines of this start's log with a message, so far.
func (s *Service) Logged(msg string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		log, err := os.ReadFile(s.Log)
		if err != nil {
			return
		}
		for line := range bytes.Lines(log[min(int(s.from), len(log)):]) {
			var entry struct{ Msg string }
			if json.Unmarshal(line, &entry) == nil && entry.Msg == msg && !yield(line) {
				return
			}
		}
	}
}

// Pid is the process's id while it runs.
func (s *Service) Pid() int { return s.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (s *Service) Ended() <-chan struct{} { return s.ended }

// Signal sends a signal to the process.
func (s *Service) Signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// Kill kills the service as kill -9 does, and waits until it has ended.
func (s *Service) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // an error means that it has ended
		<-s.ended
	}
}

// Stop stops the service gracefully and returns its error.
func (s *Service) Stop(ctx context.Context) error {
	if s.cmd == nil {
		return nil
	}
	_ = s.Signal(syscall.SIGTERM) // an error means that it has ended
	select {
	case <-s.ended:
		return s.err
	case <-ctx.Done():
		s.Kill()
		return errors.Join(ctx.Err(), errors.New("the service did not stop"))
	}
}

// Tail is the end of the log, for a failed test.
func (s *Service) Tail() string {
	log, err := os.ReadFile(s.Log)
	if err != nil {
		return err.Error()
	}
	const enough = 4000
	return string(log[max(0, len(log)-enough):])
}

// client keeps open connections for many workers to one host.
var client = sync.OnceValue(func() *http.Client { //nolint:gochecknoglobals // a connection pool, made once
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: 10 * time.Second}}
})

// reply is a complete response.
type reply struct {
	code   int
	status string // the code's text
	header http.Header
	body   []byte
}

// ask sends a request and reads the response, with any status.
func ask(ctx context.Context, method, url string, header http.Header, body []byte) (*reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := client().Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	r := &reply{code: res.StatusCode, status: res.Status, header: res.Header}
	if r.body, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	return r, nil
}

// parsed decodes the JSON of a successful response.
func (r *reply) parsed(into any) error {
	if r.code != http.StatusOK {
		return fmt.Errorf("answered %s: %s", r.status, r.body)
	}
	return json.Unmarshal(r.body, into)
}
