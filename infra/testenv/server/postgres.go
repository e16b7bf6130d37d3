package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is a private Postgres server. It keeps its folder and its port across restarts, so
// that a test can kill it and start it again.
type Postgres struct {
	bin     string // folder with initdb and postgres
	options PostgresOptions
	dir     string // made by us; the data are in dir/data
	as      *syscall.Credential
	port    int
	listens []string
	starts  int
	process *process
}

// PostgresOptions are a server's settings. With the zero options a server keeps its
// acknowledged commits.
type PostgresOptions struct {
	Parent string   // parent of its folder, instead of the usual place; open to every user
	Env    []string // environment of the server's processes
	// Settings are name=value each, and override all other settings.
	Settings []string
}

// NewPostgres initialises a server without running it; its programs are in the folder bin.
// Started by root, it runs as postgres or nobody.
func NewPostgres(ctx context.Context, bin string) (*Postgres, error) {
	return NewPostgresWith(ctx, bin, PostgresOptions{})
}

// NewPostgresWith is NewPostgres with options.
func NewPostgresWith(ctx context.Context, bin string, o PostgresOptions) (*Postgres, error) {
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := newFolderIn(o.Parent, "wt-pg-")
	if err != nil {
		return nil, err
	}
	p := &Postgres{bin: bin, dir: dir, as: as, options: o}
	if err := p.initialise(ctx); err != nil {
		return nil, errors.Join(err, p.Remove())
	}
	return p, nil
}

func (p *Postgres) initialise(ctx context.Context) error {
	if err := p.lendPrograms(); err != nil {
		return err
	}
	if err := p.makeData(); err != nil {
		return err
	}
	out, err := p.command(ctx, "initdb", "-D", p.data(), "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func (p *Postgres) makeData() error {
	if err := os.Mkdir(p.data(), 0o700); err != nil {
		return err
	}
	if p.as == nil {
		return nil
	}
	return os.Chown(p.data(), int(p.as.Uid), int(p.as.Gid))
}

// lendPrograms copies the programs to a place where the server's user can run them, if their
// folder is closed to others.
func (p *Postgres) lendPrograms() error {
	if p.as == nil || reachable(p.bin) {
		return nil
	}
	tree, within := filepath.Dir(p.bin), filepath.Base(p.bin)
	if t, w, ok := unpacked(p.bin); ok {
		tree, within = t, w
	}
	lent := filepath.Join(p.dir, "programs")
	if err := os.CopyFS(lent, os.DirFS(tree)); err != nil {
		return fmt.Errorf("copy Postgres to where user %d can run it: %w", p.as.Uid, err)
	}
	p.bin = filepath.Join(lent, within)
	return nil
}

// Start runs the server and waits until it answers.
func (p *Postgres) Start(ctx context.Context) error {
	if p.process != nil {
		return errors.New("postgres runs already")
	}
	if p.port != 0 {
		return p.startAgain(ctx)
	}
	return startOnFreePort(func(port int) error { return p.startOn(ctx, port) })
}

// startAgain waits for the helper processes of a killed server to notice and end: until then
// they hold its shared memory, and Postgres refuses to start.
func (p *Postgres) startAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := p.startOn(ctx, p.port)
		if err == nil || !strings.Contains(err.Error(), "still in use") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// ListenOn makes the server listen on further addresses besides the loopback, from its next
// start on. It trusts clients from the /30 network of each address.
func (p *Postgres) ListenOn(addresses ...string) error {
	file, err := os.OpenFile(filepath.Join(p.data(), "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // the write tells
	for _, a := range addresses {
		if _, err := fmt.Fprintf(file, "host all all %s/30 trust\n", a); err != nil {
			return err
		}
	}
	p.listens = append(p.listens, addresses...)
	return nil
}

// startOn listens on the loopback and the addresses of ListenOn, with the durability that the
// service requires.
func (p *Postgres) startOn(ctx context.Context, port int) error {
	args := []string{
		"-D", p.data(),
		"-p", strconv.Itoa(port),
		"-c", "listen_addresses=" + strings.Join(append([]string{"127.0.0.1"}, p.listens...), ","),
		"-c", "unix_socket_directories=",
		"-c", "max_connections=300",
		"-c", "shared_buffers=256MB",
		"-c", "jit=off",
		"-c", "synchronous_commit=on",
		"-c", "fsync=on",
	}
	for _, setting := range p.options.Settings {
		args = append(args, "-c", setting)
	}
	cmd := p.command(context.WithoutCancel(ctx), "postgres", args...)
	cmd.Env = append(cmd.Env, p.options.Env...)
	p.starts++ // a log per start: the helpers of a killed server still write to theirs
	process, err := start(cmd, filepath.Join(p.dir, fmt.Sprintf("log-%d", p.starts)), syscall.SIGINT)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	p.process, p.port = process, port
	if err := process.ready(ctx, p.ping); err != nil {
		return errors.Join(err, p.Stop())
	}
	return nil
}

// ping makes sure that the answering server is ours: another program may have the port.
func (p *Postgres) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the answer is what counts
	var dir string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir); err != nil {
		return err
	}
	if dir != p.data() {
		return fmt.Errorf("another server, of %s, answers on port %d", dir, p.port)
	}
	return nil
}

// Runs reports whether the started server is still running.
func (p *Postgres) Runs() bool {
	if p.process == nil {
		return false
	}
	select {
	case <-p.process.done:
		return false
	default:
		return true
	}
}

// Pid is the process id of the running server's main process.
func (p *Postgres) Pid() int { return p.process.cmd.Process.Pid }

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// URL names the database, which a superuser may use without a password.
func (p *Postgres) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", p.port)
}

// Stop ends the server: it closes connections and rolls back open transactions. The data stay.
// A second Stop is no error.
func (p *Postgres) Stop() error { return end(&p.process, syscall.SIGINT) } // Postgres calls SIGINT the fast shutdown

// Kill ends the server like kill -9. Its helpers notice and end by themselves.
func (p *Postgres) Kill() error { return end(&p.process, syscall.SIGKILL) }

// Remove stops the server and deletes all its files.
func (p *Postgres) Remove() error {
	return errors.Join(p.Stop(), os.RemoveAll(p.dir))
}

func (p *Postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := filepath.Join(p.bin, name)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = p.dir
	cmd.Env = append(withoutPostgres(os.Environ()), "LC_ALL=C", "TZ=UTC")
	cmd.Env = append(cmd.Env, Libraries(path)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	return cmd
}

// withoutPostgres drops PGDATA, PGPORT and similar variables, which would redirect the server.
func withoutPostgres(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "PG") {
			kept = append(kept, v)
		}
	}
	return kept
}
