// Program promql evaluates expressions of Prometheus for tests, by Prometheus's own code. It is a
// module of its own, because the rest of the tree does not need that code.
//
// It answers requests in JSON, one after another, until its input ends. A request describes
// expressions ([Parse]), or adds the lines of a scrape and evaluates expressions ([Look]).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// Request is one question. Set one of its members.
type Request struct {
	Parse []string `json:"parse,omitempty"` // expressions to describe
	Look  *Look    `json:"look,omitempty"`
}

// Look is the result of scraping at a time, and the expressions to evaluate then.
type Look struct {
	At          int64               `json:"at"`    // milliseconds since 1970, rising
	Lines       map[string][]string `json:"lines"` // by instance, in the text format
	Expressions []string            `json:"expressions"`
}

// Answer is the answer to a request.
type Answer struct {
	Described []Described `json:"described,omitempty"`
	Holds     []bool      `json:"holds,omitempty"` // for each expression, whether it has a result
	Error     string      `json:"error,omitempty"`
}

func main() {
	if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute})
	defer engine.Close() //nolint:errcheck // the process ends
	told := &series{byName: map[string]map[string]*line{}}
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r Request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(answer(ctx, engine, told, r)); err != nil {
			return err
		}
	}
}

func answer(ctx context.Context, engine *promql.Engine, told *series, r Request) (a Answer) {
	var err error
	for _, expression := range r.Parse {
		a.Described = append(a.Described, describe(expression))
	}
	if r.Look != nil {
		if a.Holds, err = told.look(ctx, engine, *r.Look); err != nil {
			a.Error = err.Error()
		}
	}
	return a
}
