package eventlog_test

import (
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The ids of a command's events follow from the command's id. So an append whose answer was lost
// is recognized when it is sent again.
func ExampleDeriveID() {
	command := eventlog.ID{0x2a}
	fmt.Println(eventlog.DeriveID("lamp-1", command, 0))
	fmt.Println(eventlog.DeriveID("lamp-1", command, 0) == eventlog.DeriveID("lamp-1", command, 1))
	// Output:
	// c19d3ad7-fc6a-5dff-a10e-8fea5c83167a
	// false
}

// A refusal is expected, and its text is the code that an API shows.
func ExampleRefusal_Because() {
	const errDark = eventlog.Refusal("too-dark")
	err := errDark.Because("only %d lamps are lit", 2)
	fmt.Println(err, errors.Is(err, errDark))
	// Output: too-dark: only 2 lamps are lit true
}

func ExampleFilter_Passes() {
	lamps := eventlog.Filter{Streams: []string{"lamp-"}}
	fmt.Println(lamps.Passes("lamp-1", "lamp.lit.v1"), lamps.Passes("door-1", "door.opened.v1"))
	fmt.Println(eventlog.Filter{}.Passes("door-1", "door.opened.v1"))
	// Output:
	// true false
	// true
}

// Each event carries a link to the one before it in its stream. A changed event changes all later
// links.
func ExampleLink_Next() {
	lit := eventlog.Event{ID: eventlog.ID{1}, Name: "lamp.lit.v1", Data: []byte(`{"watts":5}`)}
	link := eventlog.Link{}.Next("lamp-1", 1, lit)
	lit.Data = []byte(`{"watts":50}`)
	fmt.Println(link == eventlog.Link{}.Next("lamp-1", 1, lit))
	// Output: false
}
