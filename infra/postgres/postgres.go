package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// Options are the settings of [Open]. A zero field takes the default named beside it.
type Options struct {
	Application string // application_name: this process's name in pg_stat_activity; "watchtower"

	// Maximum connections: for the log's readers and payloads (16); for the work schema (16); for
	// read models (8). Leases and [DB.Ping] have leaseConns more, the committer and LISTEN two.
	LogConns, WorkConns, ViewConns int

	// Pause is the longest pause between two attempts at a transaction. A due time further away
	// was stored before the server's clock was set back. 0 means unknown.
	Pause time.Duration

	Window    int   // open transactions of a sequence that are not parked; 16
	Partition int64 // positions in a new partition of the log; 20 million

	ConnectTimeout   time.Duration // 5 s
	StatementTimeout time.Duration // 30 s
	LockTimeout      time.Duration // 10 s
	// IdleTimeout is how long the server lets a session idle inside a database transaction, as
	// a process does that was stopped while it held the log's lock; 2 s. It is shorter than
	// lease terms (3 s), so that the process that takes over does not also wait for the lock.
	IdleTimeout time.Duration

	// AllowDataLoss opens a server whose settings lose acknowledged commits on a power cut
	// (synchronous_commit = off, fsync = off).
	AllowDataLoss bool

	// Crash, if set, is called at each of [CrashPoints], [ArchiveCrashPoints] and
	// [RestoreCrashPoints], where a test ends the process.
	Crash  func(point string)
	Logger *slog.Logger // slog.DiscardHandler
}

// CrashPoints lists the points at which a test may end the process.
func CrashPoints() []string { return []string{beforeCommit, afterCommit} }

// ArchiveCrashPoints lists the points that only an archiving process reaches.
func ArchiveCrashPoints() []string { return []string{copied, dropped} }

// RestoreCrashPoints lists the points that only a restore reaches.
func RestoreCrashPoints() []string { return []string{recalled, rejoined} }

const (
	beforeCommit = "log.before-commit" // the batch has positions, nothing is sent
	afterCommit  = "log.after-commit"  // the batch is durable, no caller has its answer
	copied       = "archive.copied"    // open streams of a partition are copied forward, the partition still exists
	dropped      = "archive.dropped"   // a partition is dropped, no caller has its answer
	recalled     = "restore.recalled"  // the events are copied, the log does not begin with them yet
	rejoined     = "restore.rejoined"  // the log begins with them, no caller has its answer
)

// Limits on one process's use of the server.
const (
	defaultConns     = 16
	leaseConns       = 4 // so that leases do not wait for clients' reads and writes
	noticeConns      = 4 // so that webhook deliveries wait for no other queue
	defaultViewConns = 8
	defaultWindow    = 16
	defaultPartition = 20_000_000
	minVersion       = 130000 // server_version_num
)

func (o Options) withDefaults() Options {
	or := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	or(&o.ConnectTimeout, 5*time.Second)
	or(&o.StatementTimeout, 30*time.Second)
	or(&o.LockTimeout, 10*time.Second)
	or(&o.IdleTimeout, 2*time.Second)
	orInt := func(n *int, value int) {
		if *n <= 0 {
			*n = value
		}
	}
	orInt(&o.LogConns, defaultConns)
	orInt(&o.WorkConns, defaultConns)
	orInt(&o.ViewConns, defaultViewConns)
	orInt(&o.Window, defaultWindow)
	if o.Partition <= 0 {
		o.Partition = defaultPartition
	}
	if o.Application == "" {
		o.Application = "watchtower"
	}
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// DB is one process's connections to a database. Each part implements the port of its name.
type DB struct {
	Log         *Log
	Payloads    *Payloads
	Checkpoints *Checkpoints
	Leases      *Leases
	Requests    *Requests
	Snapshots   *Snapshots
	Groups      *Groups // state of the external feed's consumer groups
	Work        *Work   // the due queue and the watcher's open transactions

	config  *pgx.ConnConfig
	durable func(context.Context, *pgconn.PgConn) error
	log     *pgxpool.Pool // commits are durable
	leases  *pgxpool.Pool // like log, for leases and Ping
	work    *pgxpool.Pool // commits of this, the notices' and the view's pool do not wait for the disk
	notices *pgxpool.Pool // like work, for the queue of webhook deliveries
	view    *sql.DB
	closed  sync.Once
}

// Open connects to a database and checks that it can give the guarantees. The tables are made
// by [DB.Migrate] and need not exist yet. The URL's own parameters override the options.
func Open(ctx context.Context, url string, options Options) (*DB, error) {
	o := options.withDefaults()
	config, err := connConfig(url, o)
	if err != nil {
		return nil, err
	}
	if err := check(ctx, config, o); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	db := &DB{config: config, durable: durable}
	if o.AllowDataLoss {
		db.durable = func(ctx context.Context, conn *pgconn.PgConn) error { return conn.Ping(ctx) }
	}
	logConfig := withParams(withParams(config, knownPaths), logSettings)
	logConfig.AfterConnect = db.durable // settings may change while a process runs
	leaseConfig := logConfig.Copy()
	leaseConfig.BuildContextWatcherHandler = outlasting(leaseEnds)
	workConfig := withParams(withParams(config, knownPaths), workSettings)
	for _, p := range []struct {
		pool   **pgxpool.Pool
		config *pgx.ConnConfig
		conns  int
	}{
		{&db.log, logConfig, o.LogConns}, {&db.leases, leaseConfig, leaseConns},
		{&db.work, workConfig, o.WorkConns}, {&db.notices, workConfig, noticeConns},
	} {
		if *p.pool, err = pool(ctx, url, p.config, p.conns); err != nil {
			db.closePools()
			return nil, err
		}
	}
	view := withParams(config, viewSettings)
	db.view = stdlib.OpenDB(*view)
	db.view.SetMaxOpenConns(o.ViewConns)
	db.view.SetMaxIdleConns(o.ViewConns)

	db.Log = openLog(db.log, logConfig, o)
	db.Payloads = &Payloads{db.log}
	db.Checkpoints = &Checkpoints{db.work}
	db.Leases = &Leases{pool: db.leases}
	db.Requests = &Requests{db.log}
	db.Snapshots = &Snapshots{db.work}
	db.Groups = &Groups{db.log}
	db.Work = &Work{pool: db.work, window: o.Window, pause: o.Pause}
	return db, nil
}

// View is a handle for read models: unqualified names mean the view schema. Its commits do not
// wait for the disk. Rows and their reader's checkpoint, written in one transaction, fall back
// together when the server crashes.
func (db *DB) View() *sql.DB { return db.view }

// Ping checks that the server answers, and that it keeps its commits: its settings may have
// changed since the session began.
func (db *DB) Ping(ctx context.Context) error {
	return classed(db.leases.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return db.durable(ctx, c.Conn().PgConn()) }))
}

// probe allocates space for a table, a megabyte that does not compress, and commits to disk.
// The table is dropped by the commit.
const probe = `CREATE TEMPORARY TABLE watchtower_probe ON COMMIT DROP AS
SELECT md5(n::text) FROM generate_series(1, 16384) n`

// Probe checks that the server accepts writes: with a full disk it still answers every query,
// and accepts writes that fit into the remaining space. For a role that may not make a
// temporary table Probe checks nothing and returns no error.
func (db *DB) Probe(ctx context.Context) error {
	_, err := db.log.Exec(ctx, probe)
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42501" { // insufficient privilege
		return nil
	}
	return classed(err)
}

// Close refuses new appends, commits those it has taken, ends subscriptions with
// eventlog.ErrClosed and closes the connections. ctx bounds the commits: appends not committed
// when it ends get an error. A second Close does nothing.
func (db *DB) Close(ctx context.Context) error {
	var err error
	db.closed.Do(func() {
		err = db.Log.close(ctx)
		err = errors.Join(err, db.view.Close())
		db.Leases.close()
		db.closePools()
	})
	return err
}

// closePools closes the pools that are open.
func (db *DB) closePools() {
	for _, p := range []*pgxpool.Pool{db.notices, db.work, db.leases, db.log} {
		if p != nil {
			p.Close()
		}
	}
}

// queryEnds is how long a query whose caller has gone may take before its connection is closed. A
// lease is tried again in time, so its queries get less.
const (
	queryEnds = time.Second
	leaseEnds = 250 * time.Millisecond
)

// outlasting lets a query end although its caller has gone. A connection that is closed in the
// middle of a query has to be made anew: a client that breaks off requests could close all those
// that its requests share with other clients' requests.
func outlasting(ends time.Duration) func(*pgconn.PgConn) ctxwatch.Handler {
	return func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn(), DeadlineDelay: ends}
	}
}

// connConfig is the configuration shared by every connection of this process.
func connConfig(url string, o Options) (*pgx.ConnConfig, error) {
	parsed, err := pgxpool.ParseConfig(url) // not pgx's parser: the URL may hold pool settings
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	config := parsed.ConnConfig
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = o.ConnectTimeout
	}
	config.DialFunc = dial
	config.BuildContextWatcherHandler = outlasting(queryEnds)
	if config.ValidateConnect == nil { // a URL with several hosts finds the primary
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	for name, value := range map[string]string{
		"application_name":                    o.Application,
		"statement_timeout":                   milliseconds(o.StatementTimeout),
		"lock_timeout":                        milliseconds(o.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(o.IdleTimeout),
		"timezone":                            "UTC",
	} {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
	config.RuntimeParams["default_transaction_isolation"] = "read committed" // statements rely on it
	return config, nil
}

// knownPaths keep the planner on the plan for which every statement on the log and the queue is
// written: few rows, found by an index. Statistics may be as old as the first minute of an
// empty database.
var knownPaths = map[string]string{
	"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off",
	"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off",
	"jit": "off",
}

// Plans of the log's statements are made once per session: each has only one index to use. The
// queue's many indexes leave a choice, and a choice made for an empty table stays wrong for
// long. So its statements are planned each time, for the table's current size. The same holds
// for statements on read models: during a rebuild, a plan for the empty table would read all of
// it for each batch.
var (
	logSettings  = map[string]string{"plan_cache_mode": "force_generic_plan"}
	workSettings = map[string]string{"plan_cache_mode": "force_custom_plan", "synchronous_commit": "off"}
	viewSettings = map[string]string{"search_path": "view", "plan_cache_mode": "force_custom_plan", "synchronous_commit": "off"}
)

// withParams is a copy of a configuration with other session parameters.
func withParams(config *pgx.ConnConfig, params map[string]string) *pgx.ConnConfig {
	c := config.Copy()
	for name, value := range params {
		c.RuntimeParams[name] = value
	}
	return c
}

func pool(ctx context.Context, url string, config *pgx.ConnConfig, conns int) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	c.ConnConfig = config
	c.MaxConns = int32(min(conns, 1000))
	p, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return p, nil
}

// check refuses a server that cannot give the guarantees.
func check(ctx context.Context, config *pgx.ConnConfig, o Options) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	var version int
	var encoding string
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`).Scan(&version, &encoding)
	switch {
	case err != nil:
		return err
	case version < minVersion:
		return fmt.Errorf("server version %d is older than %d", version/10000, minVersion/10000)
	case encoding != "UTF8":
		return fmt.Errorf("the database's encoding is %s, not UTF8", encoding)
	case o.AllowDataLoss:
		return nil
	}
	return durable(ctx, conn.PgConn())
}

// durable refuses a session whose commits a power cut would lose.
func durable(ctx context.Context, conn *pgconn.PgConn) error {
	const settings = `SELECT current_setting('synchronous_commit'), current_setting('fsync')`
	answer := conn.ExecParams(ctx, settings, nil, nil, nil, nil).Read()
	switch {
	case answer.Err != nil:
		return answer.Err
	case string(answer.Rows[0][0]) == "off":
		return errors.New("synchronous_commit is off: the server would acknowledge events and lose them in a power cut; set it to on for this database or role")
	case string(answer.Rows[0][1]) == "off":
		return errors.New("fsync is off: a power cut would destroy the database; set it to on")
	}
	return nil
}

// closeTimeout bounds the closing of a connection.
const closeTimeout = 2 * time.Second

// closeConn closes a connection, independent of the callers' contexts.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx) // without an orderly end the connection is closed all the same
	select {
	case <-conn.PgConn().CleanupDone():
	case <-ctx.Done():
	}
}
