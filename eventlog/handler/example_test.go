package handler_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A shelf is an aggregate: it decides commands, and evolves by events.
type shelf struct{ free int }

type (
	build struct{ Places int } // a command, and here also its event
	put   struct{}
	wish  interface{ of(shelf) ([]step, error) }
	step  interface{ on(shelf) shelf }
)

const errNoPlace = eventlog.Refusal("no-place")

func (b build) of(shelf) ([]step, error) { return []step{b}, nil }
func (b build) on(s shelf) shelf         { return shelf{s.free + b.Places} }
func (p put) on(s shelf) shelf           { return shelf{s.free - 1} }
func (p put) of(s shelf) ([]step, error) {
	if s.free == 0 {
		return nil, errNoPlace
	}
	return []step{p}, nil
}

func (s shelf) Decide(w wish) ([]step, error) { return w.of(s) }
func (s shelf) Evolve(e step) shelf           { return e.on(s) }

// A command is decided on the state that the stream's events add up to. Its events are
// appended if no other command came in between; otherwise it is decided again.
func ExampleHandler_Do() {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	shelves := handler.Handler[shelf, wish, step]{
		Store:  db.Log(),
		Codec:  eventlog.NewCodec(eventlog.As[step, build]("shelf.built.v1"), eventlog.As[step, put]("shelf.filled.v1")),
		Random: bytes.NewReader(make([]byte, 64)), // crypto/rand.Reader in a program
	}
	ctx := context.Background()
	by := eventlog.Meta{Actor: "carpenter"}
	for _, w := range []wish{build{Places: 1}, put{}, put{}} {
		r, err := shelves.Do(ctx, "shelf-1", w, by)
		fmt.Printf("version %d, %d free, error: %v\n", r.Version, r.State.free, err)
	}
	// Output:
	// version 1, 1 free, error: <nil>
	// version 2, 0 free, error: <nil>
	// version 2, 0 free, error: no-place
}

// After a lost answer the same command is sent again with the same origin: it has one effect.
func ExampleHandler_Handle() {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	shelves := handler.Handler[shelf, wish, step]{Store: db.Log(), Codec: eventlog.NewCodec(eventlog.As[step, build]("shelf.built.v1"), eventlog.As[step, put]("shelf.filled.v1"))}
	ctx := context.Background()
	origin := handler.Origin{ID: eventlog.ID{1}, Meta: eventlog.Meta{Actor: "carpenter"}}
	first, err := shelves.HandleFrom(ctx, "shelf-1", handler.Result[shelf]{}, build{Places: 3}, origin)
	fmt.Println(first.Added, first.State.free, err)
	again, err := shelves.HandleFrom(ctx, "shelf-1", handler.Result[shelf]{}, build{Places: 3}, origin)
	fmt.Println(again.Added, again.State.free, err)
	// Output:
	// 1 3 <nil>
	// 0 3 <nil>
}
