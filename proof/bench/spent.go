package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// spent is the processor time used by each party.
type spent struct {
	service, bench time.Duration
	// server is the time of Postgres: of the server's own processes and one per connection, of
	// all its clients. Zero if it runs elsewhere.
	server time.Duration
	// busy and idle are for all processors together. Busy time of none of the above is other
	// processes' and the disk's.
	busy, idle time.Duration
}

func (s spent) since(earlier spent) spent {
	return spent{
		s.service - earlier.service, s.bench - earlier.bench, s.server - earlier.server,
		s.busy - earlier.busy, s.idle - earlier.idle,
	}
}

// shares are the idle share of all processor time, and the share of other processes.
func (s spent) shares() (idle, others float64) {
	all := float64(s.busy + s.idle)
	if all == 0 {
		return 0, 0
	}
	return float64(s.idle) / all, max(float64(s.busy-s.service-s.bench-s.server)/all, 0)
}

// meter reads processor time from /proc. Without /proc all is zero.
type meter struct {
	services   []int         // process ids
	gone       time.Duration // time of ended services
	postmaster int           // process id of the Postgres server, if it runs here; else 0
}

func newMeter(ctx context.Context, engine string, services ...int) (meter, error) {
	m := meter{services: services}
	if engine != postgresEngine {
		return m, nil
	}
	conn, err := pgx.Connect(ctx, os.Getenv(testenv.PostgresVar))
	if err != nil {
		return m, err
	}
	defer conn.Close(ctx) //nolint:errcheck // the answer is what counts
	var backend int
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return m, err
	}
	// A server elsewhere has process ids that mean nothing here.
	if p, ok := readProcess(backend); ok && p.name == "postgres" {
		m.postmaster = p.parent
	}
	return m, nil
}

func (m meter) read() spent {
	var s spent
	s.busy, s.idle = readProcessors()
	s.service = m.gone
	for _, pid := range m.services {
		if p, ok := readProcess(pid); ok {
			s.service += p.used
		}
	}
	if p, ok := readProcess(os.Getpid()); ok {
		s.bench = p.used
	}
	if m.postmaster == 0 {
		return s
	}
	if p, ok := readProcess(m.postmaster); ok {
		s.server = p.used + p.buried
	}
	folders, _ := filepath.Glob("/proc/[0-9]*") //nolint:errcheck // the pattern is good
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok && p.parent == m.postmaster {
			s.server += p.used
		}
	}
	return s
}

// process is a process's state according to the kernel (proc(5), /proc/pid/stat).
type process struct {
	name   string
	parent int
	used   time.Duration // its own, in user and kernel mode
	buried time.Duration // of its ended children
}

// tickTime is the unit of processor time in /proc: USER_HZ is 100 on every
// architecture that Go runs on.
const tickTime = time.Second / 100

// readProcessors is the time of all processors since the machine's start (proc(5), /proc/stat).
func readProcessors() (busy, idle time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if err != nil || len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0
	}
	for i, field := range fields[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
		ticks, err := strconv.Atoi(field)
		switch {
		case err != nil:
			return 0, 0
		case i == 3 || i == 4:
			idle += time.Duration(ticks) * tickTime
		default:
			busy += time.Duration(ticks) * tickTime
		}
	}
	return busy, idle
}

func readProcess(pid int) (p process, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	// The name is in parentheses and may contain any character, also parentheses.
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if from < 0 || to < from {
		return p, false
	}
	fields := strings.Fields(string(text[to+1:])) // from the third field on
	if len(fields) < 15 {
		return p, false
	}
	var numbers [5]int
	for i, at := range []int{1, 11, 12, 13, 14} { // ppid, utime, stime, cutime, cstime
		if numbers[i], err = strconv.Atoi(fields[at]); err != nil {
			return p, false
		}
	}
	return process{
		name: string(text[from+1 : to]), parent: numbers[0],
		used:   time.Duration(numbers[1]+numbers[2]) * tickTime,
		buried: time.Duration(numbers[3]+numbers[4]) * tickTime,
	}, true
}
