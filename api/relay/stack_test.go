package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/eventlog/projector"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	hooks "github.com/tempo-watchtower/watchtower/infra/webhook"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
	"github.com/tempo-watchtower/watchtower/projections/relay/lanes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testChain = 42431

var epoch = time.Unix(1_800_000_000, 0).UTC()

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stack is the API of a replica behind a real socket. The log is not fed into the read model
// until a test does so.
type stack struct {
	t      testing.TB
	config Config
	addr   string
	log    *logged
}

// engines runs a test on every engine. open adds a replica on the same store.
func engines(t *testing.T, test func(t *testing.T, open func(change ...func(*Config)) *stack)) {
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		test(t, func(change ...func(*Config)) *stack { return newStack(t, db.Log(), db.View(), change...) })
	})
	t.Run("postgres", func(t *testing.T) {
		url := testenv.Postgres(t)
		test(t, func(change ...func(*Config)) *stack {
			db, err := postgres.Open(t.Context(), url, postgres.Options{})
			check(t, err)
			t.Cleanup(func() { check(t, db.Close(context.Background())) })
			check(t, db.Migrate(t.Context()))
			check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
			return newStack(t, db.Log, db.View(), change...)
		})
	})
}

func newStack(t testing.TB, log port.Store, view *sql.DB, change ...func(*Config)) *stack {
	t.Helper()
	guard, err := hooks.NewGuard(hooks.Rules{Hosts: []string{"127.0.0.1"}, Development: true})
	check(t, err)
	seal, err := notice.NewSealer(bytes.Repeat([]byte{5}, notice.SealKeyBytes))
	check(t, err)
	s := &stack{t: t, log: new(logged)}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	now := func() time.Time { return epoch }
	s.config = Config{
		API: rest.Config{
			Limits: rest.DefaultLimits(), CursorKey: bytes.Repeat([]byte{9}, rest.CursorKeyBytes), Now: now, Random: rand.Reader, Log: logger,
		},
		Intake: &intake.Desk{
			Ahead:   time.Hour,
			Intents: intake.Intents{Store: log, Codec: intent.Codec(), Random: rand.Reader}, Chains: map[chain.ID]func(intent.Request) error{testChain: nil},
			Webhooks: intake.NewWebhookChecks(guard), Seal: &seal, AtOnce: 16, Now: now,
		},
		Query: intents.Query{DB: view}, Tail: tailOf(t, log),
	}
	s.config.Fleet = fleetOf(log, view)
	for _, c := range change {
		c(&s.config)
	}
	s.serve(New(s.config))
	return s
}

// logged collects the log's lines.
type logged struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// tailOf is the log's tail, followed until the test ends.
func tailOf(t testing.TB, log port.Store) *tail.Tail {
	t.Helper()
	end := tail.New(log, tx.Codec(), slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var following sync.WaitGroup
	following.Go(func() { end.Run(ctx) })
	t.Cleanup(func() {
		stop()
		following.Wait()
	})
	return end
}

// serve serves a handler on a socket until the test ends.
func (s *stack) serve(h http.Handler) {
	s.t.Helper()
	listener, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	check(s.t, err)
	server := rest.Server(h, s.config.API.Limits, slog.New(slog.DiscardHandler))
	var open sync.WaitGroup // net/http itself does not wait for closed connections
	own := server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		own(conn, state)
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(rest.LimitListener(listener, s.config.API.Limits.Connections, nil)) }()
	s.t.Cleanup(func() {
		check(s.t, server.Close())
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			s.t.Error(err)
		}
		open.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	s.addr = listener.Addr().String()
}

// response is an answer that was read to its end.
type response struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request, from any goroutine.
func (s *stack) send(method, target, body string, header ...string) (res response, err error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+target, strings.NewReader(body))
	if err != nil {
		return res, err
	}
	if body != "" || method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		return res, err
	}
	defer got.Body.Close() //nolint:errcheck // read to its end
	res = response{status: got.StatusCode, header: got.Header}
	res.body, err = io.ReadAll(got.Body)
	return res, err
}

var (
	pathOfIntent  = regexp.MustCompile(`^(/v1/intents/)[^/]+(.*)$`)
	pathOfWebhook = regexp.MustCompile(`^(/v1/webhooks/)([0-9a-fA-F]+)(.*)$`)
	pathOfSigner  = regexp.MustCompile(`^(/v1/signers/)[^/]+$`)
	pathOfLane    = regexp.MustCompile(`^(/v1/lanes/)[^/]+/[^/]+/[^/]+(.*)$`)
)

// do sends a request, and checks the answer against the contract.
func (s *stack) do(method, target, body string, header ...string) response {
	s.t.Helper()
	res, err := s.send(method, target, body, header...)
	check(s.t, err)
	path, _, _ := strings.Cut(target, "?")
	path = pathOfIntent.ReplaceAllString(path, "${1}{id}$2")
	path = pathOfWebhook.ReplaceAllString(path, "${1}{endpoint}$3")
	path = pathOfSigner.ReplaceAllString(path, "${1}{address}")
	path = pathOfLane.ReplaceAllString(path, "${1}{chain}/{address}/{nonceKey}$2")
	if err := conforms(strings.ToLower(method), path, res); err != nil {
		s.t.Errorf("%s %s answered %d %s: %v", method, target, res.status, res.body, err)
	}
	return res
}

// contract is openapi.yaml, as OpenAPI 3.1 and as JSON Schema.
var contract = sync.OnceValues(func() (c struct {
	doc     *openapi3.T
	schemas *jsonschema.Compiler
	mu      *sync.Mutex
}, err error,
) {
	c.mu = new(sync.Mutex)
	if c.doc, err = openapi3.NewLoader().LoadFromData(contractYAML); err != nil {
		return c, err
	}
	text, err := yaml.YAMLToJSON(contractYAML)
	if err != nil {
		return c, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return c, err
	}
	c.schemas = jsonschema.NewCompiler()
	c.schemas.DefaultDraft(jsonschema.Draft2020)
	return c, c.schemas.AddResource("openapi.json", doc)
})

// conforms checks an answer against the contract.
func conforms(method, path string, res response) error {
	c, err := contract()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	item := c.doc.Paths.Value(path)
	if item == nil || item.GetOperation(strings.ToUpper(method)) == nil {
		return errors.New("it is not in the contract")
	}
	if item.GetOperation(strings.ToUpper(method)).Responses.Value(fmt.Sprint(res.status)) == nil {
		return errors.New("the status is not in the contract")
	}
	place := "components/schemas/Problem"
	if kind := res.header.Get("Content-Type"); kind != "application/problem+json" {
		escape := strings.NewReplacer("/", "~1", "{", "%7B", "}", "%7D").Replace
		place = strings.Join([]string{"paths", escape(path), method, "responses", fmt.Sprint(res.status), "content", escape(kind), "schema"}, "/")
	}
	schema, err := c.schemas.Compile("openapi.json#/" + place)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(res.body))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// into reads an answer's body.
func into[T any](t testing.TB, res response, status int) (v T) {
	t.Helper()
	if res.status != status {
		t.Fatalf("answered %d, want %d: %s", res.status, status, res.body)
	}
	check(t, json.Unmarshal(res.body, &v))
	return v
}

// problem checks that an answer is a refusal with this status and code.
func (s *stack) problem(res response, status int, code string) {
	s.t.Helper()
	var p rest.Problem
	if err := json.Unmarshal(res.body, &p); err != nil {
		s.t.Fatalf("answered %d %s, which is no problem: %v", res.status, res.body, err)
	}
	if res.status != status || p.Code != code || p.Status != status {
		s.t.Errorf("answered %d %s, want %d %s: %s", res.status, p.Code, status, code, p.Detail)
	}
}

// command executes commands for an intent, like the relay's workers.
func (s *stack) command(id chain.IntentID, all ...intent.Command) {
	s.t.Helper()
	for _, c := range all {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "test"})
		check(s.t, err)
		_, err = s.config.Intake.Intents.Handle(s.t.Context(), intent.Stream(id), c, o)
		check(s.t, err)
	}
}

// project feeds the log into the read models, up to its head.
func (s *stack) project() {
	s.t.Helper()
	store := s.config.Intake.Intents.Store
	head, err := store.Head(s.t.Context())
	check(s.t, err)
	for _, p := range []projector.Projector{
		{Name: intents.Name, Filter: intents.Filter(), Fold: intents.Projection{Codec: intent.Codec()}.Fold},
		{Name: lanes.Name, Filter: lanes.Filter(), Fold: lanes.Projection{Codec: lane.Codec()}.Fold},
		{Name: intents.TermsName, Filter: intents.TermsFilter(), Fold: intents.Terms{Codec: intent.Codec()}.Fold},
	} {
		ctx, stop := context.WithCancel(s.t.Context())
		defer stop()
		p.DB, p.Log = s.config.Query.DB, store
		p.Moved = func(at eventlog.Position, _ bool) {
			if at >= head {
				stop()
			}
		}
		if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
			s.t.Fatal(err)
		}
	}
}
