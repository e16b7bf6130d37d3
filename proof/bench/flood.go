package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// floodCommand is the argument with which the benchmark runs itself as the misbehaving
// client, in a process of its own at nice 19.
const floodCommand = "flood"

// floodOrder is the JSON object that the misbehaving client first reads from its standard input.
// It prints a line when its requests are ready, begins at the next input line, and prints a
// flood when it is over, or when its input ends.
type floodOrder struct {
	Delivery    string          `json:"delivery"` // URL of delivery's API
	Relay       string          `json:"relay"`    // URL of the relay's API; empty without one
	Token       string          `json:"token"`
	Client      string          `json:"client"`
	Rate        int             `json:"rate"` // requests a second
	Connections int             `json:"connections"`
	Lasts       time.Duration   `json:"lasts"`
	Victims     []chain.Address `json:"victims"`
	Reads       []string        `json:"reads"` // paths of the victims' payments
}

// flood is the result of the misbehaving client's requests.
type flood struct {
	Due      int                       `json:"due"`      // requests of the schedule
	Sent     int                       `json:"sent"`     // of these, sent before the load ended; plus streams and slow bodies
	Taken    int                       `json:"taken"`    // transactions and intents accepted
	Statuses map[string]int            `json:"statuses"` // responses by status; "cut" is no response
	Kinds    map[string]map[string]int `json:"kinds"`    // the same by kind of request
	CPU      float64                   `json:"cpuSeconds"`
}

// tenthClient is the process of the misbehaving client.
type tenthClient struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
	read io.Closer
	said bytes.Buffer
}

// hire starts the misbehaving client and waits until its requests are ready.
func (hood *neighbourhood) hire(ctx context.Context, all []*owed) (c *tenthClient, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c = &tenthClient{cmd: exec.CommandContext(ctx, "nice", "-n", "19", self, floodCommand)}
	c.cmd.Stderr = &c.said
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out, c.read = json.NewDecoder(out), out
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	order := floodOrder{
		Delivery: hood.service.URL, Token: hood.tokens[goodClients], Client: clientName(goodClients),
		Rate: hood.limit * hood.times, Connections: hood.connections, Lasts: hood.lasts,
	}
	if hood.relay {
		order.Relay = hood.url
	}
	for i := range goodClients {
		order.Victims = append(order.Victims, devAddress(i))
	}
	for _, o := range all {
		order.Reads = append(order.Reads, o.read)
	}
	var ready bool
	if err := errors.Join(json.NewEncoder(c.in).Encode(order), c.out.Decode(&ready)); err != nil {
		return nil, errors.Join(fmt.Errorf("the misbehaving client: %w", err), c.dismiss())
	}
	return c, nil
}

// strike starts the client's flood.
func (c *tenthClient) strike() error {
	_, err := io.WriteString(c.in, "true\n")
	return err
}

// answers waits until the flood is over.
func (c *tenthClient) answers() (*flood, error) {
	var f flood
	if err := c.out.Decode(&f); err != nil {
		return nil, fmt.Errorf("the misbehaving client: %w: %.2000s", err, c.said.String())
	}
	if err := c.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("the misbehaving client: %w: %.2000s", err, c.said.String())
	}
	return &f, nil
}

// dismiss ends the client if it still runs.
func (c *tenthClient) dismiss() error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	_ = c.in.Close() // the client ends when its input ends
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it was killed
	return nil
}

// serveFlood is the misbehaving client's process.
func serveFlood(ctx context.Context, in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	var order floodOrder
	if err := orders.Decode(&order); err != nil {
		return err
	}
	m, err := newMischief(order)
	if err != nil {
		return err
	}
	defer m.close()
	if err := json.NewEncoder(out).Encode(true); err != nil {
		return err
	}
	var begin bool
	if err := orders.Decode(&begin); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, order.Lasts)
	defer cancel()
	before, _ := readProcess(os.Getpid()) // without /proc no processor time is reported
	f := m.flood(ctx)
	after, _ := readProcess(os.Getpid())
	f.CPU = (after.used - before.used).Seconds()
	return json.NewEncoder(out).Encode(f)
}

// heldConnections is the number of connections each for streams, waits and slow bodies; the
// others send the schedule's requests.
const heldConnections = 5

// mischief is the misbehaving client: its requests, and their results.
type mischief struct {
	floodOrder
	deck   []*misdeed // the schedule's kinds in order
	client *http.Client
	hole   io.Closer // a listener that accepts nothing
	late   string    // URL of the hole

	mu   sync.Mutex
	seen flood
}

// flood sends each of the schedule's requests when it is due, or as soon as a connection is
// free, and holds the other connections open.
func (m *mischief) flood(ctx context.Context) flood {
	start := time.Now()
	total := int(m.Lasts.Seconds() * float64(m.Rate))
	due := make(chan int, total)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(due)
		for k := range total {
			if !rest(ctx, time.Until(start.Add(time.Duration(k)*time.Second/time.Duration(m.Rate)))) {
				return
			}
			due <- k
			m.note(func(f *flood) { f.Due++ })
		}
	})
	for range m.Connections - 3*heldConnections {
		all.Go(func() {
			for k := range due {
				if ctx.Err() != nil {
					return
				}
				kind := m.deck[k%len(m.deck)]
				m.send(ctx, kind, kind.next())
			}
		})
	}
	for i := range heldConnections {
		for _, hold := range m.holds(i) {
			all.Go(func() {
				for ctx.Err() == nil {
					hold(ctx)
					rest(ctx, holdPause)
				}
			})
		}
	}
	all.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

// holdPause is the pause between two streams, waits or slow bodies of a connection.
const holdPause = 100 * time.Millisecond

func (m *mischief) note(change func(*flood)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.seen)
}

// answered counts a response. Requests that ctx has ended do not count.
func (m *mischief) answered(kind string, status, taken int) {
	name := "cut"
	if status > 0 {
		name = strconv.Itoa(status)
	}
	m.note(func(f *flood) {
		f.Sent++
		f.Taken += taken
		if f.Kinds[kind] == nil {
			f.Kinds[kind] = map[string]int{}
		}
		f.Statuses[name]++
		f.Kinds[kind][name]++
	})
}

// send sends one request and reads its response.
func (m *mischief) send(ctx context.Context, kind *misdeed, r prepared) {
	status, answer, err := m.ask(ctx, r)
	if err != nil && ctx.Err() != nil {
		return
	}
	taken := 0
	if kind.submits && status > 0 && status < http.StatusBadRequest {
		taken = bytes.Count(answer, []byte(`"ok":true`))
		if status == http.StatusAccepted {
			taken = max(taken, 1)
		}
	}
	m.answered(kind.name, status, taken)
}

func (m *mischief) ask(ctx context.Context, r prepared) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-Api-Key", m.Token)
	if r.signature != "" {
		req.Header.Set("Authorization", "Signature "+r.signature)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := m.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()                                     //nolint:errcheck // it is only read
	answer, err = io.ReadAll(io.LimitReader(res.Body, 64<<10)) // a stream may have no end
	if err != nil && ctx.Err() == nil {
		return 0, nil, err
	}
	return res.StatusCode, answer, nil
}
