package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Requests stores requests by their Idempotency-Key, shared by all replicas.
type Requests interface {
	Claim(ctx context.Context, c request.Claim) (request.Stage, request.Answer, error)
	Answer(ctx context.Context, name request.Name, claim eventlog.ID, a request.Answer) error
	Release(ctx context.Context, name request.Name, claim eventlog.ID) error
}

// Idempotency configures how requests with an Idempotency-Key are remembered.
type Idempotency struct {
	Requests Requests // nil: the Idempotency-Key header is ignored
	// Keep is how long an answer is stored. Hold is how long a claim on a running request
	// lasts, beside the time that the request asks to wait. Hold must exceed the time that a
	// request can take.
	Keep, Hold time.Duration
	// Share is how many requests are remembered for one client; 0: no bound.
	Share int
}

// answerMax is the most bytes of an answer that is stored. If the answer is longer, a repeated
// request is carried out again.
const answerMax = 64 << 10

// settleTimeout bounds how long storing the answer or releasing the claim may take.
const settleTimeout = 5 * time.Second

// once replays an endpoint's answer to a request that repeats an earlier one, by its
// Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). The endpoint must tolerate
// being called twice: answers of refused or failed requests are not stored. If a process dies
// between the effect and storing the answer, its claim expires, and the next repeat carries the
// request out again. Only a refusal frees the key for another request.
func (a *api) once(e endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		given := r.Header["Idempotency-Key"]
		if len(given) == 0 || a.Idempotency.Requests == nil {
			return e(w, r)
		}
		key, err := readIdempotencyKey(given)
		if err != nil {
			return err
		}
		var body []byte
		if hasBody(r) {
			if body, err = a.readBody(w, r); err != nil {
				return err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		c := request.Claim{
			Name: nameOf(exchangeOf(r), key), Print: printOf(r, body), Client: exchangeOf(r).client(),
			Hold: a.Idempotency.Hold, Keep: a.Idempotency.Keep, Share: a.Idempotency.Share,
		}
		if r.URL.Query().Has("wait") {
			c.Hold += waitMax
		}
		if _, err := io.ReadFull(a.Random, c.ID[:]); err != nil {
			panic(fmt.Sprintf("rest: draw a claim: %v", err))
		}
		ctx, cancel := a.work(r)
		stage, answer, err := a.Idempotency.Requests.Claim(ctx, c)
		cancel()
		switch {
		case err != nil:
			return fmt.Errorf("claim a request: %w", err)
		case stage == request.Differs:
			return ErrIdempotencyConflict.Because("the Idempotency-Key %s belongs to another request", Quote(key))
		case stage == request.Running:
			return ErrIdempotencyRunning.Because("the request with the Idempotency-Key %s is being carried out", Quote(key))
		case stage == request.Answered:
			return again(w, answer)
		}
		return a.firstTime(w, r, c, e)
	}
}

// firstTime carries out a claimed request, and stores its answer if it is complete.
func (a *api) firstTime(w http.ResponseWriter, r *http.Request, c request.Claim, e endpoint) error {
	on, kept := exchangeOf(r), &keeping{ResponseWriter: w}
	end := a.leave // also after a panic, which continues after settle
	defer func() { a.settle(r, c, kept, end) }()
	err := e(kept, r)
	switch {
	case err == nil && on.err == nil && kept.status == http.StatusOK && !kept.tooLong:
		end = a.keep
	case err != nil && a.problem(err).Status < http.StatusInternalServerError:
		end = a.release
	}
	return err
}

// settle ends a claim with keep, release or leave.
func (a *api) settle(r *http.Request, c request.Claim, kept *keeping, end func(context.Context, request.Claim, *keeping) error) {
	// The client may be gone by now; the effect must be recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), settleTimeout)
	defer cancel()
	if err := end(ctx, c, kept); err != nil { // the claim expires by itself
		a.Log.LogAttrs(ctx, slog.LevelWarn, "the request could not be remembered", slog.String("request", exchangeOf(r).id), slog.Any("err", err))
	}
}

// keep stores a complete answer, to be replayed.
func (a *api) keep(ctx context.Context, c request.Claim, kept *keeping) error {
	answer := request.Answer{Status: kept.status, Media: kept.Header().Get("Content-Type"), Body: kept.body.Bytes()}
	return a.Idempotency.Requests.Answer(ctx, c.Name, c.ID, answer)
}

// release frees the key of a refused request, which had no effect.
func (a *api) release(ctx context.Context, c request.Claim, _ *keeping) error {
	return a.Idempotency.Requests.Release(ctx, c.Name, c.ID)
}

// leave is for a request that had an effect, or may have had one, but no answer that can be
// stored. The claim expires at once: the same request is carried out again, and no other
// request can use the key.
func (a *api) leave(ctx context.Context, c request.Claim, _ *keeping) error {
	c.Hold = 0
	_, _, err := a.Idempotency.Requests.Claim(ctx, c)
	return err
}

// again replays a stored answer.
func again(w http.ResponseWriter, answer request.Answer) error {
	w.Header().Set("Content-Type", answer.Media)
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // an error means that the client is gone
	return nil
}

// readIdempotencyKey reads the values of a request's Idempotency-Key header.
func readIdempotencyKey(given []string) (string, error) {
	key, ok := request.ParseKeyHeader(given[0])
	if len(given) > 1 || !ok {
		return "", inHeader("Idempotency-Key", ErrInvalidIdempotencyKey.Because("an Idempotency-Key is %s, sent once", request.KeyForm))
	}
	return key, nil
}

// nameOf separates the keys of different clients. Requests without an API key share one space.
func nameOf(on *exchange, key string) request.Name {
	h := sha256.New()
	if on.key != nil {
		h.Write(on.key.ID[:])
	}
	h.Write([]byte("\n" + key))
	return request.Name(h.Sum(nil))
}

// printOf is a hash of everything that determines the effect of a request. This includes an
// Authorization that is not an API key: it carries the signature of a cancel.
func printOf(r *http.Request, body []byte) request.Print {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s\n", r.Method, r.RequestURI) //nolint:errcheck // a hash never fails
	for _, value := range r.Header["Authorization"] {
		if scheme, _, _ := strings.Cut(value, " "); !strings.EqualFold(scheme, "Bearer") {
			fmt.Fprintf(h, "%s\n", value) //nolint:errcheck // likewise
		}
	}
	h.Write([]byte("\n"))
	h.Write(body)
	return request.Print(h.Sum(nil))
}

// keeping records an answer while it is written, up to answerMax bytes.
type keeping struct {
	http.ResponseWriter
	status  int
	body    bytes.Buffer
	tooLong bool
}

func (w *keeping) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *keeping) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.tooLong = w.tooLong || w.body.Len()+len(b) > answerMax; !w.tooLong {
		w.body.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is used by http.ResponseController.
func (w *keeping) Unwrap() http.ResponseWriter { return w.ResponseWriter }
