// Package feed gives the log's events to programs outside, through Watermill
// (github.com/ThreeDotsLabs/watermill): [Subscriber] is a message.Subscriber over any
// event store, and [Forwarder] passes what it receives to any message.Publisher.
//
// # What is promised
//
//   - Every event that passes the topic is delivered until it is acked, parked or
//     skipped by somebody's wish: at least once. A message's UUID is the event's id.
//   - The events of a stream come in their order, the next one after the ack of the one
//     before. Streams are spread over lanes, which go on independently of each other.
//   - Of the processes of a group one at a time is given events. When it dies, another
//     takes over within seconds and goes on at the group's checkpoint: the highest
//     position up to which everything is acked, or belongs to a parked stream. For an
//     instant two may overlap, and what was acked after the last checkpoint comes again.
//   - An event that is nacked comes again, after a growing pause. After [Options.Retries]
//     repeats its stream is parked whole: its later events are held back, those of other
//     streams go on, until somebody wishes the stream to go on (consumer.Retry) or to
//     leave that event out (consumer.Skip).
//
// Effects that must happen exactly once note (stream, version) in the transaction that
// has the effect, and leave out what is not newer: see docs/watermill.md.
//
// # What is delivered
//
// The payload is the event's data as it was recorded, JSON, or what [Options.Upcast]
// makes of it. The metadata's keys are the constants Key….
package feed
