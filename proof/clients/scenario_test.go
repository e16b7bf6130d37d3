package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// A scenario is the steps that every client takes, with the expected results.
type scenario struct{ Steps []step }

// step is one call of a client, or one action of the test (Do). A text that is $name stands for a
// value that an earlier step kept.
type step struct {
	Why  string
	Call string         // name in the client's table
	Do   string         // name in the test's own table
	With map[string]any // arguments
	// Faults happen to the requests of this step in turn, each to one.
	Faults []fault
	// Until repeats the step until its result is as expected.
	Until bool
	// Expect has members that the result must have. The result may have others. $set stands for
	// any value, $absent for none, and ~ begins a part of a text.
	Expect any
	Fails  *failure
	// Keep names values of the result by their paths, such as attempts.0.txHash.
	Keep map[string]string
}

// fault is a way in which a request fails; see fault.go.
type fault string

// failure is an error as all clients report it.
type failure struct {
	Kind    string `json:"kind"` // problem, no-answer or rpc
	Code    any    `json:"code,omitempty"`
	Outcome string `json:"outcome,omitempty"` // refused or unknown
}

// client performs the calls of a scenario with one of the clients.
type client interface {
	perform(ctx context.Context, call string, with map[string]any) (result, error)
}

// result is a call's value, or its failure.
type result struct {
	Value any      `json:"value,omitempty"`
	Error *failure `json:"error,omitempty"`
	Says  string   `json:"says,omitempty"` // the error's text
}

func readScenario(t *testing.T) scenario {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "scenario.yaml"))
	check(t, err)
	var s scenario
	check(t, yaml.UnmarshalWithOptions(text, &s, yaml.Strict()))
	if len(s.Steps) == 0 {
		t.Fatal("the scenario has no steps")
	}
	return s
}

// slow is the duration from which a step is reported.
const slow = 3 * time.Second

// run takes all steps of the scenario with one client.
func (w *world) run(t *testing.T, c client, all scenario) {
	t.Helper()
	for i, s := range all.Steps {
		where := fmt.Sprintf("step %d (%s%s: %s)", i+1, s.Call, s.Do, s.Why)
		began := time.Now()
		if err := w.take(c, s); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if took := time.Since(began); took > slow {
			t.Logf("%s took %s", where, took.Round(time.Millisecond))
		}
	}
}

func (w *world) take(c client, s step) error {
	with, err := w.bound(s.With)
	if err != nil {
		return err
	}
	w.faults.set(s.Faults)
	for {
		got, err := w.once(c, s, with)
		if err == nil {
			err = w.judge(s, got)
		}
		switch {
		case err == nil:
			if left := w.faults.open(); left > 0 {
				return fmt.Errorf("%d faults met no request", left)
			}
			return w.keep(s, got)
		case !s.Until || w.ctx.Err() != nil:
			return err
		}
		select { // nothing reports that a page of the service would change
		case <-w.ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *world) once(c client, s step, with any) (result, error) {
	members, _ := with.(map[string]any)
	if s.Do != "" {
		action, ok := w.actions()[s.Do]
		if !ok {
			return result{}, fmt.Errorf("the test has no action %s", s.Do)
		}
		value, err := action(members)
		return result{Value: value}, err
	}
	w.called(s.Call)
	return c.perform(w.ctx, s.Call, members)
}

// judge compares a result with the expectation.
func (w *world) judge(s step, got result) error {
	switch {
	case s.Fails != nil && got.Error == nil:
		return fmt.Errorf("it did not fail: %s", shown(got.Value))
	case s.Fails != nil:
		return matches("error", plain(s.Fails), plain(got.Error))
	case got.Error != nil:
		return fmt.Errorf("it failed: %s (%s)", shown(got.Error), got.Says)
	}
	want, err := w.bound(s.Expect)
	if err != nil || s.Expect == nil {
		return err
	}
	if err := matches("result", plain(want), plain(got.Value)); err != nil {
		return fmt.Errorf("%w; the result is %.3000s", err, shown(got.Value))
	}
	return nil
}

// matches reports where got lacks something that want has.
func matches(where string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		members, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %s, want %s", where, shown(got), shown(want))
		}
		for name, v := range want {
			if err := matches(where+"."+name, v, members[name]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		items, ok := got.([]any)
		if !ok || len(items) != len(want) {
			return fmt.Errorf("%s is %s, want %d items: %s", where, shown(got), len(want), shown(want))
		}
		for i, v := range want {
			if err := matches(fmt.Sprint(where, ".", i), v, items[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		switch {
		case want == "$set" && got != nil && got != "":
			return nil
		case want == "$absent" && (got == nil || got == "" || got == false):
			return nil
		case strings.HasPrefix(want, "~") && strings.Contains(fmt.Sprint(got), want[1:]):
			return nil
		}
	}
	if shown(want) != shown(got) {
		return fmt.Errorf("%s is %s, want %s", where, shown(got), shown(want))
	}
	return nil
}

// bound replaces texts that name values.
func (w *world) bound(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, member := range v {
			var err error
			if all[name], err = w.bound(member); err != nil {
				return nil, err
			}
		}
		return all, nil
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			var err error
			if all[i], err = w.bound(item); err != nil {
				return nil, err
			}
		}
		return all, nil
	case string:
		name, ok := strings.CutPrefix(v, "$")
		if !ok || name == "set" || name == "absent" {
			return v, nil
		}
		value, known := w.values[name]
		if !known {
			return nil, fmt.Errorf("no step kept $%s", name)
		}
		return value, nil
	}
	return v, nil
}

// keep remembers values of a result.
func (w *world) keep(s step, got result) error {
	for name, path := range s.Keep {
		value := plain(got.Value)
		for part := range strings.SplitSeq(path, ".") {
			if path == "." {
				break
			}
			switch of := value.(type) {
			case map[string]any:
				value = of[part]
			case []any:
				i, err := strconv.Atoi(part)
				if err != nil || i >= len(of) {
					return fmt.Errorf("%s: there is no %s in %s", path, part, shown(of))
				}
				value = of[i]
			default:
				value = nil
			}
		}
		if value == nil {
			return fmt.Errorf("there is no %s in %s", path, shown(got.Value))
		}
		w.values[name] = value
	}
	return nil
}

// plain is a value as JSON has it, with exact numbers.
func plain(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the test's own values
	}
	return decoded(text)
}

func decoded(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(fmt.Errorf("%w: %s", err, text))
	}
	return v
}

func shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
