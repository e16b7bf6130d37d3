// Package messages makes the messages to the webhooks of intents, from the events in the log.
package messages

import (
	"context"
	"encoding/json"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
)

// Messages make the deliveries that events of intents cause. Their body is a message with the
// request and the intent's state: see [intent.Message].
type Messages struct {
	states states.States[course]
	codec  eventlog.Codec[intent.Event]
	data   int
}

// course is an intent that has webhooks, or none.
type course struct {
	story   intent.Story
	targets []target
	none    bool // the intent has no webhooks
}

// target is the endpoint of an intent's deliveries.
type target struct {
	endpoint notice.EndpointID
	url      string // as recorded
}

// statesMost bounds the memory for states of intents that have webhooks.
const statesMost = 64 << 20

// New returns messages about the intents in a log. They have the inputs of an intent's calls if
// these have at most data bytes.
func New(store states.Streams, data int) *Messages {
	m := &Messages{codec: intent.Codec(), data: data}
	m.states = states.States[course]{
		Store: store, Fold: m.fold, Most: statesMost,
		Fixed: func(c course) bool { return c.none },
		Size: func(c course) int {
			size := c.story.Size()
			for _, t := range c.targets {
				size += len(t.endpoint) + len(t.url)
			}
			return size
		},
	}
	return m
}

func (m *Messages) fold(c course, r eventlog.Recorded) (course, error) {
	id, err := intent.ParseStream(r.Stream)
	if err != nil {
		return c, err
	}
	e, err := m.codec.Decode(r.Name, r.Data)
	if err != nil {
		return c, err
	}
	if asked, is := e.(intent.Requested); is {
		if len(asked.Request.Webhooks) == 0 {
			return course{none: true}, nil
		}
		for _, w := range asked.Request.Webhooks {
			c.targets = append(c.targets, target{notice.EndpointOf(asked.Request.Client, w.URL), w.URL})
		}
	}
	c.story = c.story.After(id, e, m.data)
	return c, nil
}

const aheadMost = 16 // streams that are read at once

// Ahead reads side by side the intents that are not remembered, as of their first event in a batch.
// All clients' deliveries wait for the batch. News repeats a read that failed, and returns its error.
func (m *Messages) Ahead(ctx context.Context, events []eventlog.Recorded) {
	met := map[eventlog.Stream]bool{}
	var lacking []eventlog.Recorded
	for _, r := range events {
		if !met[r.Stream] && m.states.Reads(r) {
			lacking = append(lacking, r)
		}
		met[r.Stream] = true
	}
	//nolint:errcheck // see News
	commands.Each(len(lacking), aheadMost, func(i int) error {
		_, err := m.states.After(ctx, lacking[i])
		return err
	})
}

// News returns the deliveries that an event of an intent causes. For the request itself they have
// no sequence, so that the queue learns only that the endpoints are in use.
func (m *Messages) News(ctx context.Context, r eventlog.Recorded) (news []notice.News, err error) {
	c, err := m.states.After(ctx, r)
	if err != nil || c.none {
		return nil, err
	}
	said, public := c.story.Message(intent.Owner)
	if !public && r.Version != 1 {
		return nil, nil
	}
	one := notice.News{Client: c.story.Request().Client}
	if public {
		one.Intent, one.Seq = said.Intent, said.Sequence
		if one.Body, err = json.Marshal(said); err != nil {
			return nil, err
		}
	}
	for _, t := range c.targets {
		one.Endpoint, one.URL = t.endpoint, t.url
		news = append(news, one)
	}
	return news, nil
}
