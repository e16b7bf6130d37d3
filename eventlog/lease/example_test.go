package lease_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// One process at a time does the work; the other one learns that the lease is held.
func ExampleOwner_Once() {
	db, err := embedded.Open("", embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	process := func(name string) lease.Owner {
		return lease.Owner{Leases: db.Work(), Holder: name, TTL: 3 * time.Second, Renew: time.Second, Log: slog.New(slog.DiscardHandler)}
	}
	ctx := context.Background()
	held, err := process("a").Once(ctx, "cleaning", func(ctx context.Context) error {
		held, err := process("b").Once(ctx, "cleaning", func(context.Context) error { return nil })
		fmt.Println("b:", held, err)
		return nil
	})
	fmt.Println("a:", held, err)
	// Output:
	// b: false <nil>
	// a: true <nil>
}
