package main_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	delivery "github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// The operator commands for a watchtower's store work on a relayer's: migrate its schemas,
// follow the log, list consumers, and verify it, also while it runs. verify reports a log that
// breaks the relay's promises.
func TestLookedAfter(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[1], store)
		w.says(t, 0, "", nil, "migrate")
		s := w.relayer(t)
		check(t, s.Start(w.ctx))
		c := w.client(t, s)
		w.create(t, []client{c}, w.payments(3)...)
		w.done(t, s)
		if out := w.asks(t, "tail", "--url="+s.URL, "--after=0", "--until=head", "--json", "--name=tx.finalized"); strings.Count(out, `"tx.finalized.v1"`) != 3 {
			t.Errorf("the tail is %s", out)
		}
		w.says(t, 0, "BEHIND", nil, "consumers", "list")
		w.says(t, 0, "no faults", nil, "verify", "--quiet")
		check(t, s.Stop(w.ctx))
		w.judge(t)

		storage, err := delivery.OpenStorage(w.ctx, w.settings.Delivery, delivery.StorageOptions{Log: slog.New(slog.DiscardHandler)})
		check(t, err)
		stream := lane.Stream(chain.Sequence{Chain: w.id, Sender: wallet.Dev(0).Address()})
		var version eventlog.Version
		for r, err := range storage.Log.ReadStream(w.ctx, stream, 0) {
			check(t, err)
			version = r.Version
		}
		name, data, err := lane.Codec().Encode(lane.Opened{Holder: "an impostor", Token: 1, At: time.Now()})
		check(t, err)
		_, err = storage.Log.Append(w.ctx, stream, version, eventlog.Event{ID: eventlog.ID{1}, Name: name, Data: data, Meta: eventlog.Meta{Actor: "tester"}})
		check(t, err)
		check(t, storage.Close(context.WithoutCancel(w.ctx)))
		if out := w.says(t, 1, "P7", nil, "verify", "--quiet"); !strings.Contains(out, string(stream)) {
			t.Errorf("it says %s", out)
		}
	})
}

// Without a configuration the doctor does not report that all is well.
func TestDoctorOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles)
	s := w.relayer(t)
	check(t, s.Start(w.ctx))
	c := w.client(t, s)
	r := w.one(0, "one")
	w.create(t, []client{c}, r)
	w.done(t, s)
	if got := c.must(t, http.StatusOK, http.MethodGet, at(r), nil); got.Status != intent.StatusCompleted {
		t.Errorf("it is %s", got.Status)
	}
	w.flags = without(w.flags, "--chains=", "--confirmations=", "--pools=", "--signers-")
	w.says(t, 2, "there is no lane to diagnose", nil, "doctor")
	check(t, s.Stop(w.ctx))
}

// asks returns the output of a command that calls a service and opens no store.
func (w *world) asks(t *testing.T, args ...string) string {
	t.Helper()
	flags := w.flags
	defer func() { w.flags = flags }()
	w.flags = nil
	return w.says(t, 0, "", nil, args...)
}

// request puts intents into the log in the format of the API, for a named client. It refuses the
// same intents as the API.
func TestRequestSpeaksAsTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds()[1], inFiles)
	request := func(text string, args ...string) rig.Command {
		c, err := rig.Run(w.ctx, strings.NewReader(text), nil, program, append(append([]string{"request"}, args...), w.flags...)...)
		check(t, err)
		return c
	}
	r := w.one(0, "first")
	r.Client, r.Order, r.Gas.MaxFee = "shop", "row", intent.NewAmount(20_000_000_000)
	text, err := json.Marshal(wish(r))
	check(t, err)
	want := r.ID().String() + " waiting\n"
	if c := request(string(text)+string(text), "--client=shop"); c.Status != 0 || c.Stdout != want+want {
		t.Errorf("it ends with %d: %s", c.Status, c.Says())
	}
	var got intent.State
	for _, e := range w.events(t) {
		if e.Stream != intent.Stream(r.ID()) {
			continue
		}
		fact, err := intent.Codec().Decode(e.Name, e.Data)
		check(t, err)
		got = got.Evolve(fact)
	}
	if d := cmp.Diff(r, got.Requested.Request, cmp.Comparer(func(a, b intent.Amount) bool { return a == b })); d != "" {
		t.Errorf("asked for (-) and taken on (+):\n%s", d)
	}
	for what, text := range map[string]string{
		"the chain's name in the log": strings.Replace(string(text), `"chainId"`, `"chain"`, 1),
		"a client in the body":        strings.Replace(string(text), `{"chainId"`, `{"client":"shop","chainId"`, 1),
		"one member twice":            strings.Replace(string(text), `"key":`, `"key":"x","key":`, 1),
	} {
		if c := request(text); c.Status == 0 || !strings.Contains(c.Stderr, "intent 1: ") {
			t.Errorf("%s: it ends with %d: %s", what, c.Status, c.Says())
		}
	}
}
