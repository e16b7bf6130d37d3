package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// heldCanceler answers with a number of members. It counts the requests that hold their answers,
// which wait until the test lets them go on.
type heldCanceler struct {
	members int
	held    chan struct{}
	proceed chan struct{}
}

func (h heldCanceler) Cancel(ctx context.Context, r canceler.Request, _ eventlog.Meta) (canceler.Answer, error) {
	if err := r.Hold(ctx, h.members); err != nil {
		return canceler.Answer{}, fmt.Errorf("%w: %w", canceler.ErrUnfinished, err)
	}
	h.held <- struct{}{}
	<-h.proceed
	a := canceler.Answer{ID: group.ID{Chain: testChain, Sender: r.Sender, Group: r.Group}, NonceKey: chain.NonceKey{31: 7}}
	for n := range uint64(h.members) {
		a.Members = append(a.Members, canceler.Member{
			Hash: chain.Keccak(fmt.Append(nil, n)), Nonce: n, Status: tx.StatusCanceled, Canceled: n%3 > 0, Erased: n%2 > 0,
		})
	}
	return a, nil
}

// Of one client's cancels with large answers three are carried out at once and eight wait. The
// others are answered 503 at once: they are recorded. Small answers take no place.
func TestLargeCancelsTakePlaces(t *testing.T) {
	resttest.TakeTurns(t, NewLargeCancels, rest.HolderOf, largePlaces, largeShare, largeQueue)
	const all, refused = 20, 20 - largeShare - largeQueue
	c := newCancelStack(t)
	h := heldCanceler{largeCancel + 1, make(chan struct{}, all), make(chan struct{})}
	places := NewLargeCancels()
	c.config.Canceler, c.config.LargeCancels = h, places
	c.restart()
	answers := make(chan response, all)
	send := func() {
		res, _ := c.send(http.MethodPost, c.path(""), c.typed(testChain, uint64(testTime.Unix())+3600))
		answers <- res
	}
	proceed := sync.OnceFunc(func() { close(h.proceed) })
	defer proceed()
	for range all {
		go send()
	}
	deadline := time.After(patience)
	for range refused {
		select {
		case res := <-answers:
			wantProblem(t, "too many large answers", res, http.StatusServiceUnavailable, cancelUnfinished)
		case <-deadline:
			t.Fatalf("%d large answers of one client are in memory at once, want %d", len(h.held), largeShare)
		}
	}
	for waiting := 0; len(h.held) < largeShare || waiting < largeQueue; _, waiting = places.Load() {
		select {
		case <-deadline:
			t.Fatalf("%d answers are held, %d cancels wait", len(h.held), waiting)
		default:
			runtime.Gosched()
		}
	}
	if n := len(h.held); n != largeShare {
		t.Errorf("%d large answers of one client are in memory at once, want %d", n, largeShare)
	}
	c.config.Canceler = heldCanceler{largeCancel, h.held, h.proceed}
	c.restart()
	go send() // does not wait for a place
	for len(h.held) <= largeShare {
		select {
		case <-deadline:
			t.Fatal("a small answer waits for a place")
		default:
			runtime.Gosched()
		}
	}
	proceed()
	for range all - refused + 1 {
		if res := <-answers; res.status != http.StatusOK {
			t.Error(res)
		}
	}
	if free, waiting := places.Load(); free != largePlaces || waiting != 0 {
		t.Errorf("%d places are free afterwards, %d cancels wait", free, waiting)
	}
}

// placedWriter records the parts of an answer, and how many large places are free meanwhile.
type placedWriter struct {
	*httptest.ResponseRecorder
	places *rest.Places
	parts  int
	free   int
}

func (w *placedWriter) Write(part []byte) (int, error) {
	w.parts++
	w.free, _ = w.places.Load()
	return w.ResponseRecorder.Write(part)
}

// A large answer is sent in parts, in its place, and lists every member.
func TestLargeCancelIsSentInParts(t *testing.T) {
	for _, members := range []int{0, 1, largeCancel, largeCancel + 1, 2 * largeCancel, 2*largeCancel + 3} {
		c := newCancelStack(t)
		h := heldCanceler{members, make(chan struct{}, 1), make(chan struct{})}
		close(h.proceed)
		places := NewLargeCancels()
		c.config.Canceler, c.config.LargeCancels = h, places
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path(""), nil)
		r.Host = "127.0.0.1"
		r.Header.Set("Authorization", "Signature "+c.sign(chain.Hash{}))
		w := &placedWriter{ResponseRecorder: httptest.NewRecorder(), places: places}
		New(c.config).ServeHTTP(w, r)
		parts, free := 1, largePlaces
		if members > largeCancel {
			parts, free = (members+largeCancel-1)/largeCancel, largePlaces-1
		}
		if w.Code != http.StatusOK || w.parts < parts || w.parts > parts+1 || w.free != free {
			t.Fatalf("%d members: answered %d in %d parts, while %d places were free", members, w.Code, w.parts, w.free)
		}
		answer, err := h.Cancel(t.Context(), canceler.Request{
			Sender: c.sender, Group: c.key.Group(), Hold: func(context.Context, int) error { <-h.held; return nil },
		}, eventlog.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		want := canceledGroup{
			ChainID: testChain, Sender: c.sender, GroupID: c.key.Group(), NonceKey: answer.NonceKey,
			Canceled: members - (members+2)/3, Members: canceledMembers(answer.Members),
		}
		if body, err := json.Marshal(want); err != nil || string(body)+"\n" != w.Body.String() {
			t.Errorf("%d members: answered %d bytes, want %d: %v", members, w.Body.Len(), len(body)+1, err)
		}
	}
}

// Each chunk of members is visited in a place of cancels.
func TestChunksOfCancelsTakePlaces(t *testing.T) {
	c := newCancelStack(t)
	places := NewCancels()
	c.config.Cancels = places
	used := 0
	c.Canceler.Rows = func(context.Context, chain.ID, []chain.Hash) (map[chain.Hash]tx.State, error) {
		free, _ := places.Load()
		used = cancelPlaces - free
		return nil, nil
	}
	erase := c.Canceler.Payloads
	c.Canceler.Payloads = placedErasures{erase, func() {
		if free, _ := places.Load(); free != cancelPlaces-1 {
			t.Errorf("%d places are free when bytes are erased", free)
		}
	}}
	c.restart()
	if res := c.do(http.MethodPost, c.path(""), c.typed(testChain, uint64(testTime.Unix())+3600)); res.status != http.StatusOK || used != 1 {
		t.Errorf("%d places were used when rows were read: %v", used, res)
	}
	if free, _ := places.Load(); free != cancelPlaces {
		t.Errorf("%d places are free afterwards", free)
	}
}

// placedErasures call see before each call of Erase.
type placedErasures struct {
	commands.PayloadRows
	see func()
}

func (p placedErasures) Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error {
	p.see()
	return p.PayloadRows.Erase(ctx, id, hashes)
}
