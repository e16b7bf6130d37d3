// Package feed delivers the log's events to external programs, through Watermill
// (github.com/ThreeDotsLabs/watermill): [Subscriber] is a message.Subscriber over any event
// store, and [Forwarder] publishes the received events to any message.Publisher.
//
// # Guarantees
//
//   - Every event that passes the topic is delivered at least once, until it is acked,
//     parked, or skipped by command. A message's UUID is the event's id.
//   - The events of a stream come in order, each after the ack of the previous one.
//     Streams are spread over lanes (partitions), which proceed independently.
//   - One process of a group at a time receives events. When it dies, another
//     takes over within seconds and continues at the group's checkpoint: the highest
//     position up to which every event is acked, or belongs to a parked stream. For an
//     instant two may overlap, and events acked after the last checkpoint come again.
//   - An event that is nacked comes again, with backoff. After [Options.Retries]
//     repeats its stream is parked as a whole: its later events are held back, and other
//     streams continue. A command resumes the stream (consumer.Retry) or
//     skips that event (consumer.Skip).
//
// Effects that must happen exactly once record (stream, version) in the effect's transaction,
// and ignore events that are not newer: see docs/howto/watermill.md.
//
// # Messages
//
// The payload is the event's data as recorded, JSON, or as converted by [Options.Upcast]. The
// metadata's keys are the constants Key….
package feed
