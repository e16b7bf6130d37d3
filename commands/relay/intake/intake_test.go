package intake_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Unix(1_800_000_000, 0).UTC()

// guard refuses URLs that contain a word.
type guard string

func (guard) Check(string) error { return nil }

func (g guard) CheckNow(_ context.Context, url string) error {
	if strings.Contains(url, string(g)) {
		return errors.New("the host may not be called")
	}
	return nil
}

func newDesk(t *testing.T) *intake.Desk {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &intake.Desk{
		Intents: intake.Intents{Store: db.Log(), Codec: intent.Codec(), Random: rand.Reader},
		Chains: map[chain.ID]func(intent.Request) error{1: func(r intent.Request) error {
			if len(r.Calls) > 1 {
				return intent.ErrInvalid.Because("the chain has no batches")
			}
			return nil
		}, 2: nil},
		Webhooks: intake.NewWebhookChecks(guard("internal")), Seal: sealer(t, 1), AtOnce: 4, Ahead: time.Hour, Now: func() time.Time { return epoch },
	}
}

func asked(change ...func(*intent.Request)) intent.Request {
	r := intent.Request{
		Client: "shop", Key: "order-1", From: intent.From{Pool: "hot"}, Chain: 2, Calls: []intent.Call{{To: &chain.Address{9}}},
		Webhooks: []intent.Webhook{{URL: "https://hooks.example.com/secret"}}, Deadline: uint64(epoch.Unix()) + 60,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// A refused request leaves no trace, and the reason reveals no secret.
func TestRefusals(t *testing.T) {
	d := newDesk(t)
	d.Allow = func(_ context.Context, r intent.Request) error {
		if r.Subject == "banned" {
			return eventlog.Refusal("halted")
		}
		return nil
	}
	for name, c := range map[string]struct {
		change func(*intent.Request)
		want   eventlog.Refusal
	}{
		"no such chain":     {func(r *intent.Request) { r.Chain = 3 }, commands.ErrUnsupportedChain},
		"not on this chain": {func(r *intent.Request) { r.Chain, r.Calls = 1, append(r.Calls, r.Calls...) }, intent.ErrInvalid},
		"a long webhook": {func(r *intent.Request) {
			r.Webhooks[0].URL += strings.Repeat("a", intent.GivenURLMax)
		}, intent.ErrWebhookURL},
		"a webhook inside":   {func(r *intent.Request) { r.Webhooks[0].URL = "https://internal.example.com/secret" }, intent.ErrWebhookURL},
		"not allowed":        {func(r *intent.Request) { r.Subject = "banned" }, "halted"},
		"nothing to be done": {func(r *intent.Request) { r.Calls = nil }, intent.ErrInvalid},
		"too far ahead": {func(r *intent.Request) {
			r.Deadline, r.NotBefore = 0, uint64(epoch.Add(time.Hour).Unix())+1
		}, intent.ErrTooFarAhead},
		"too late": {func(r *intent.Request) { r.Deadline = uint64(epoch.Unix()) }, intent.ErrDeadlinePassed},
	} {
		a := d.Create(t.Context(), []intent.Request{asked(c.change)}, eventlog.Meta{})[0]
		if !errors.Is(a.Err, c.want) || a.State.Status() != intent.StatusAbsent || strings.Contains(a.Err.Error(), "secret") {
			t.Errorf("%s: %v, %s", name, a.Err, a.State.Status())
		}
	}
	if head, err := d.Intents.Store.Head(t.Context()); head != 0 || err != nil {
		t.Errorf("%d events are recorded, %v", head, err)
	}
}

func sealer(t *testing.T, secret byte) *notice.Sealer {
	t.Helper()
	s, err := notice.NewSealer(bytes.Repeat([]byte{secret}, notice.SealKeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// The secret parts of a webhook's URL are nowhere in the log, and the key opens them.
// Without a key no webhook is accepted.
func TestSealed(t *testing.T) {
	d := newDesk(t)
	if a := d.Create(t.Context(), []intent.Request{asked()}, eventlog.Meta{})[0]; a.Err != nil {
		t.Fatal(a.Err)
	}
	for r, err := range d.Intents.Store.ReadStream(t.Context(), intent.Stream(asked().ID()), 0) {
		if err != nil || strings.Contains(string(r.Data), "secret") || !strings.Contains(string(r.Data), "https://hooks.example.com/") {
			t.Errorf("%s, %v", r.Data, err)
		}
		e, err := d.Intents.Codec.Decode(r.Name, r.Data)
		if err != nil {
			t.Fatal(err)
		}
		url := e.(intent.Requested).Request.Webhooks[0].URL
		if opened, err := d.Seal.Open(url); err != nil || opened != asked().Webhooks[0].URL {
			t.Errorf("%s, %v", opened, err)
		}
	}
	d.Seal = nil
	other := asked(func(r *intent.Request) { r.Key = "order-2" })
	if a := d.Create(t.Context(), []intent.Request{other}, eventlog.Meta{})[0]; !errors.Is(a.Err, intent.ErrWebhookURL) {
		t.Errorf("without a key: %v", a.Err)
	}
}

// A repeated request gets the intent's current state, even if it would be refused now. A
// different request under the same key is refused.
func TestRepeated(t *testing.T) {
	d := newDesk(t)
	first := d.Create(t.Context(), []intent.Request{asked()}, eventlog.Meta{})[0]
	if first.Err != nil || first.Known {
		t.Fatal(first.Err, first.Known)
	}
	now := epoch.Add(time.Hour) // the deadline has passed
	d.Now = func() time.Time { return now }
	d.Webhooks = intake.NewWebhookChecks(guard("example"))
	d.Chains = nil
	d.Allow = func(context.Context, intent.Request) error { return eventlog.Refusal("halted") }
	if a := d.Cancel(t.Context(), nil, asked().ID(), "changed my mind", eventlog.Meta{}); a.Err != nil {
		t.Fatal(a.Err)
	}
	again := d.Create(t.Context(), []intent.Request{asked()}, eventlog.Meta{})[0]
	if again.Err != nil || !again.Known || again.State.Status() != intent.StatusCanceled {
		t.Errorf("%v, known %v, %s", again.Err, again.Known, again.State.Status())
	}
	other := d.Create(t.Context(), []intent.Request{asked(func(r *intent.Request) { r.Subject = "x" })}, eventlog.Meta{})[0]
	if !errors.Is(other.Err, intent.ErrDiffers) || other.State.Status() != intent.StatusAbsent {
		t.Errorf("another request under the key: %v, %s", other.Err, other.State.Status())
	}
	fresh := d.Create(t.Context(), []intent.Request{asked(func(r *intent.Request) { r.Key = "order-2" })}, eventlog.Meta{})[0]
	if !errors.Is(fresh.Err, commands.ErrUnsupportedChain) {
		t.Errorf("one that there was not: %v", fresh.Err)
	}
}

// A request made before the vault's key changed still counts as the same when repeated, as
// long as the former key is known.
func TestRepeatedUnderAnotherKey(t *testing.T) {
	d := newDesk(t)
	ask := func(change ...func(*intent.Request)) intake.Answer {
		return d.Create(t.Context(), []intent.Request{asked(change...)}, eventlog.Meta{})[0]
	}
	if a := ask(); a.Err != nil {
		t.Fatal(a.Err)
	}
	alone := sealer(t, 2)
	both := alone.After(*sealer(t, 3), *sealer(t, 1))
	d.Seal = &both
	if a := ask(); a.Err != nil || !a.Known {
		t.Errorf("%v, known %v", a.Err, a.Known)
	}
	for what, change := range map[string]func(*intent.Request){
		"subject": func(r *intent.Request) { r.Subject = "x" },
		"webhook": func(r *intent.Request) { r.Webhooks[0].URL += "x" },
	} {
		if a := ask(change); !errors.Is(a.Err, intent.ErrDiffers) {
			t.Errorf("another %s: %v", what, a.Err)
		}
	}
	d.Seal = alone
	if a := ask(); !errors.Is(a.Err, intent.ErrDiffers) {
		t.Errorf("without the key before: %v", a.Err)
	}
}

// Of many concurrent requests one creates the intent. Different requests under its key are
// refused.
func TestHundredAtOnce(t *testing.T) {
	d := newDesk(t)
	var asking sync.WaitGroup
	var mu sync.Mutex
	made, known, refused := map[string]int{}, 0, 0
	for i := range 100 {
		asking.Go(func() {
			subject := fmt.Sprint(i % 2)
			a := d.Create(t.Context(), []intent.Request{asked(func(r *intent.Request) { r.Subject = subject })}, eventlog.Meta{})[0]
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(a.Err, intent.ErrDiffers):
				refused++
			case a.Err != nil:
				t.Error(a.Err)
			case a.Known:
				known++
			default:
				made[subject]++
			}
		})
	}
	asking.Wait()
	if len(made) != 1 || made["0"]+made["1"] != 1 || known != 49 || refused != 50 {
		t.Errorf("made %v, known %d, refused %d", made, known, refused)
	}
	if head, err := d.Intents.Store.Head(t.Context()); head != 1 || err != nil {
		t.Errorf("%d events are recorded, %v", head, err)
	}
}

// A batch is answered place by place; a bad request does not affect the others.
func TestBatch(t *testing.T) {
	d := newDesk(t)
	var all []intent.Request
	for i := range 10 {
		all = append(all, asked(func(r *intent.Request) { r.Key = fmt.Sprint("order-", i) }))
	}
	all[3].Chain, all[7] = 9, all[6]
	for i, a := range d.Create(t.Context(), all, eventlog.Meta{Actor: "test"}) {
		switch {
		case i == 3 && !errors.Is(a.Err, commands.ErrUnsupportedChain), i != 3 && a.Err != nil:
			t.Errorf("%d: %v", i, a.Err)
		case i != 3 && a.State.Requested.Request.Key != all[i].Key:
			t.Errorf("%d: %s is answered", i, a.State.Requested.Request.Key)
		}
	}
	if head, err := d.Intents.Store.Head(t.Context()); head != 8 || err != nil {
		t.Errorf("%d events are recorded, %v", head, err)
	}
}

// Of a batch's requests under one key the first creates the intent, and the others know it
// or differ from it.
func TestBatchOfOneKey(t *testing.T) {
	d := newDesk(t)
	var all []intent.Request
	for i := range 50 {
		one := asked(func(r *intent.Request) { r.Key = fmt.Sprint("order-", i) })
		other := one
		other.Subject = "another"
		all = append(all, one, one, other)
	}
	for i, a := range d.Create(t.Context(), all, eventlog.Meta{Actor: "test"}) {
		switch {
		case i%3 == 2 && !errors.Is(a.Err, intent.ErrDiffers), i%3 < 2 && (a.Err != nil || a.Known != (i%3 == 1)):
			t.Errorf("%d: known %v, %v", i, a.Known, a.Err)
		}
	}
}

// A client can command its own intents; about another client's it learns nothing.
func TestWishes(t *testing.T) {
	d := newDesk(t)
	shop, other := "shop", "other"
	id := asked().ID()
	if a := d.Create(t.Context(), []intent.Request{asked()}, eventlog.Meta{})[0]; a.Err != nil {
		t.Fatal(a.Err)
	}
	for _, client := range []*string{&other, new(string)} {
		if a := d.Cancel(t.Context(), client, id, "", eventlog.Meta{}); !errors.Is(a.Err, intent.ErrUnknown) || a.State.Status() != intent.StatusAbsent {
			t.Errorf("%q cancels what is another's: %v", *client, a.Err)
		}
		if a := d.SpeedUp(t.Context(), client, id, intent.NewAmount(9), eventlog.Meta{}); !errors.Is(a.Err, intent.ErrUnknown) {
			t.Errorf("%q speeds up what is another's: %v", *client, a.Err)
		}
	}
	if a := d.Cancel(t.Context(), nil, chain.IntentID{7}, "", eventlog.Meta{}); !errors.Is(a.Err, intent.ErrUnknown) {
		t.Errorf("nobody's: %v", a.Err)
	}
	most := intent.NewAmount(8)
	d.Most = func(of chain.ID) intent.Amount {
		if of != asked().Chain {
			t.Errorf("chain %s is asked about", of)
		}
		return most
	}
	if a := d.SpeedUp(t.Context(), &shop, id, intent.NewAmount(9), eventlog.Meta{}); !errors.Is(a.Err, intent.ErrOverCeiling) {
		t.Errorf("more than anybody offers: %+v", a)
	}
	most = intent.NewAmount(10)
	for _, known := range []bool{false, true} {
		a := d.SpeedUp(t.Context(), &shop, id, intent.NewAmount(9), eventlog.Meta{})
		if a.Err != nil || a.Known != known || a.State.Floor != intent.NewAmount(9) {
			t.Errorf("%+v", a)
		}
	}
	for _, known := range []bool{false, true} {
		a := d.Cancel(t.Context(), &shop, id, "wrong", eventlog.Meta{})
		if a.Err != nil || a.Known != known || a.State.Status() != intent.StatusCanceled || a.State.End.Detail != "wrong" {
			t.Errorf("%+v", a)
		}
	}
	if a := d.SpeedUp(t.Context(), &shop, id, intent.NewAmount(10), eventlog.Meta{}); !errors.Is(a.Err, intent.ErrSettled) {
		t.Errorf("faster than canceled: %v", a.Err)
	}
}

// lost loses answers: the events of an append were written, or not.
type lost struct {
	port.Store
	mu    sync.Mutex
	calls int
	err   error // of every call, if set
}

func (l *lost) Append(ctx context.Context, stream eventlog.Stream, at eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return eventlog.Appended{}, l.err
	}
	a, err := l.Store.Append(ctx, stream, at, events...)
	if l.calls++; l.calls == 1 && err == nil {
		return eventlog.Appended{}, eventlog.ErrUnknown
	}
	return a, err
}

// After a lost answer the intent exists once; if the result is unknown, the answer is an
// error.
func TestLostAnswer(t *testing.T) {
	d := newDesk(t)
	store := &lost{Store: d.Intents.Store}
	d.Intents.Store = store
	a := d.Create(t.Context(), []intent.Request{asked()}, eventlog.Meta{})[0]
	if a.Err != nil || a.Known {
		t.Errorf("%v, known %v", a.Err, a.Known)
	}
	if head, err := store.Head(t.Context()); head != 1 || err != nil {
		t.Errorf("%d events, %v", head, err)
	}
	store.err = eventlog.ErrUnknown
	a = d.Create(t.Context(), []intent.Request{asked(func(r *intent.Request) { r.Key = "order-2" })}, eventlog.Meta{})[0]
	if !errors.Is(a.Err, eventlog.ErrUnknown) || commands.IsRefusal(a.Err) {
		t.Errorf("%v", a.Err)
	}
}

// Told is called once for each answer of a batch.
func TestAnswersAreTold(t *testing.T) {
	d := newDesk(t)
	var mu sync.Mutex
	var known, refused, all int
	d.Told = func(a intake.Answer) {
		mu.Lock()
		defer mu.Unlock()
		all++
		if a.Known {
			known++
		}
		if errors.Is(a.Err, commands.ErrUnsupportedChain) {
			refused++
		}
	}
	good, bad := asked(), asked()
	bad.Key, bad.Chain = "bad", 9
	for range 2 {
		d.Create(t.Context(), []intent.Request{good, bad}, eventlog.Meta{Actor: "test"})
	}
	if all != 4 || known != 1 || refused != 2 {
		t.Errorf("%d answers, %d known, %d refused", all, known, refused)
	}
}

// An intent may begin as late as the setting allows. Its request is answered for its whole life,
// also if the setting has become stricter.
func TestBeginsAhead(t *testing.T) {
	d := newDesk(t)
	r := asked(func(r *intent.Request) { r.Deadline, r.NotBefore = 0, uint64(epoch.Add(time.Hour).Unix()) })
	if a := d.Create(t.Context(), []intent.Request{r}, eventlog.Meta{})[0]; a.Err != nil || a.Known || a.State.Requested.Request.NotBefore != r.NotBefore {
		t.Fatalf("%+v", a)
	}
	d.Ahead = time.Minute
	if a := d.Create(t.Context(), []intent.Request{r}, eventlog.Meta{})[0]; a.Err != nil || !a.Known {
		t.Errorf("the same request again: %v, known: %t", a.Err, a.Known)
	}
	r.NotBefore = 0
	if a := d.Create(t.Context(), []intent.Request{r}, eventlog.Meta{})[0]; !errors.Is(a.Err, intent.ErrDiffers) {
		t.Errorf("the same key without notBefore: %v", a.Err)
	}
}
