package follower_test

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A follower handles each event at least once, and goes on at its checkpoint when it is run again.
func ExampleFollower_Run() {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for i, name := range []string{"lamp.lit.v1", "lamp.moved.v1", "lamp.lit.v1"} {
		lamp := eventlog.Event{ID: eventlog.ID{byte(i + 1)}, Name: name, Data: []byte(`{}`)}
		if _, err := db.Log().Append(ctx, "lamp-1", eventlog.Version(i), lamp); err != nil {
			panic(err)
		}
	}
	lights := follower.Follower{
		Store: db.Log(), Checkpoints: db.Work(), Reader: "lights", Max: 100,
		Filter: eventlog.Filter{Names: []string{"lamp.lit."}},
		Moved: func(at eventlog.Position) {
			if at == 3 { // in a program it runs until the program ends
				stop()
			}
		},
	}
	err = lights.Run(ctx, func(_ context.Context, events []eventlog.Recorded) error {
		for _, e := range events {
			fmt.Println(e.Position, e.Name, "version", e.Version)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 lamp.lit.v1 version 1
	// 3 lamp.lit.v1 version 3
	// context canceled
}
