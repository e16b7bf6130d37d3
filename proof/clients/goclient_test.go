package clients_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
)

// goClient performs calls with the Go client.
type goClient struct {
	client *watchtower.Client
	relay  *watchtower.Relay
}

// arguments has the arguments of all calls; each call reads some.
type arguments struct {
	Chain        uint64
	Pool         string
	Raws         []string
	Hash         string
	Include      string
	Hashes       []string
	ID           string
	Wait         watchtower.Milestone
	Key          string // an idempotency key
	Sender       string
	Group        string
	Code         string
	Signature    string
	Expires      int64
	Deployment   string
	Method       string
	Params       []any
	Request      watchtower.IntentRequest
	Requests     []watchtower.IntentRequest
	Filters      map[string]any
	After        uint64
	Reason       string
	Fee          string
	URL          string
	Notices      []watchtower.NoticeID
	Headers      map[string]string
	Body         string
	Secrets      []string
	StopAt       map[string]any
	TimeoutMilli int64
}

func (c goClient) perform(ctx context.Context, call string, with map[string]any) (result, error) {
	run, ok := c.calls()[call]
	if !ok {
		return result{}, fmt.Errorf("the Go client has no call %s", call)
	}
	var a arguments
	if err := into(with, &a); err != nil {
		return result{}, err
	}
	value, err := run(ctx, a)
	if err != nil {
		f, err := failureOf(err)
		return result{Error: f, Says: fmt.Sprint(err)}, nil
	}
	return result{Value: value}, nil
}

// failureOf is an error in the form that all clients share.
func failureOf(err error) (*failure, error) {
	f := &failure{Outcome: "refused"}
	if watchtower.OutcomeUnknown(err) {
		f.Outcome = "unknown"
	}
	var problem *watchtower.Problem
	var rpc *watchtower.RPCError
	switch {
	case errors.As(err, &problem):
		f.Kind, f.Code = "problem", problem.Code
	case errors.As(err, &rpc):
		f.Kind, f.Code = "rpc", rpc.Code
	case errors.As(err, new(*watchtower.NoAnswerError)):
		f.Kind = "no-answer"
	case errors.Is(err, watchtower.ErrWebhook):
		f.Kind = "webhook"
	default:
		f.Kind = "other"
	}
	return f, err
}

type goCall = func(ctx context.Context, a arguments) (any, error)

func (c goClient) calls() map[string]goCall {
	all := map[string]goCall{}
	for _, part := range []map[string]goCall{c.deliveryCalls(), c.groupCalls(), c.serviceCalls(), c.relayCalls(), c.webhookCalls()} {
		for name, call := range part {
			all[name] = call
		}
	}
	return all
}

func (c goClient) deliveryCalls() map[string]goCall {
	return map[string]goCall{
		"client.submit": func(ctx context.Context, a arguments) (any, error) {
			raws, err := bytesOf(a.Raws)
			if err != nil {
				return nil, err
			}
			return c.client.SubmitAll(ctx, watchtower.Submission{ChainID: a.Chain, Transactions: raws, IdempotencyKey: a.Key, Wait: a.Wait, Timeout: millis(a)})
		},
		"client.validate": func(ctx context.Context, a arguments) (any, error) {
			raws, err := bytesOf(a.Raws)
			if err != nil {
				return nil, err
			}
			return c.client.Validate(ctx, a.Chain, raws...)
		},
		"client.get": func(ctx context.Context, a arguments) (any, error) { return c.client.Get(ctx, a.Hash) },
		"client.wait": func(ctx context.Context, a arguments) (any, error) {
			return c.client.Wait(ctx, a.Hash, a.Wait)
		},
		"client.list": func(ctx context.Context, a arguments) (any, error) {
			var f watchtower.Filters
			if err := into(a.Filters, &f); err != nil {
				return nil, err
			}
			return collect(c.client.List(ctx, f), a)
		},
		"client.events":    func(ctx context.Context, a arguments) (any, error) { return collect(c.client.Trail(ctx, a.Hash), a) },
		"client.markStale": func(ctx context.Context, a arguments) (any, error) { return c.client.MarkStale(ctx, a.Hash) },
		"client.follow": func(ctx context.Context, a arguments) (any, error) {
			f := watchtower.EventFilter{After: &a.After, TxHash: a.Hash, Sender: a.Sender, UntilHead: a.StopAt == nil, WithState: a.Include == "transaction"}
			return collect(c.client.Events(ctx, f), a)
		},
		"client.rpc": func(ctx context.Context, a arguments) (any, error) {
			var value any
			err := c.client.RPC(ctx, a.Chain, &value, a.Method, a.Params...)
			return value, err
		},
	}
}

func (c goClient) groupCalls() map[string]goCall {
	return map[string]goCall{
		"client.groups": func(ctx context.Context, a arguments) (any, error) {
			return collect(c.client.Groups(ctx, a.Sender, watchtower.GroupFilters{ChainID: a.Chain}), a)
		},
		"client.group": func(ctx context.Context, a arguments) (any, error) {
			return c.client.Group(ctx, a.Chain, a.Sender, a.Group)
		},
		"cancelMessage": func(_ context.Context, a arguments) (any, error) {
			data, err := wishOf(a).TypedData()
			return json.RawMessage(data), err
		},
		"client.cancelGroup": func(ctx context.Context, a arguments) (any, error) {
			signed := func([]byte) ([]byte, error) { return hex.DecodeString(strings.TrimPrefix(a.Signature, "0x")) }
			if a.Expires == 0 {
				return c.client.CancelGroupID(ctx, a.Chain, a.Sender, a.Group, signed)
			}
			return c.client.CancelGroup(ctx, wishOf(a), signed)
		},
	}
}

func (c goClient) serviceCalls() map[string]goCall {
	return map[string]goCall{
		"client.health":       func(ctx context.Context, _ arguments) (any, error) { return c.client.Health(ctx) },
		"client.live":         func(ctx context.Context, _ arguments) (any, error) { return probed(c.client.Live(ctx)) },
		"client.ready":        func(ctx context.Context, _ arguments) (any, error) { return probed(c.client.Ready(ctx)) },
		"client.contract":     func(ctx context.Context, _ arguments) (any, error) { return parsed(c.client.ContractJSON(ctx)) },
		"client.contractText": func(ctx context.Context, _ arguments) (any, error) { return c.client.Contract(ctx) },
		"client.docs":         func(ctx context.Context, _ arguments) (any, error) { return c.client.Docs(ctx) },
		"client.problem":      func(ctx context.Context, a arguments) (any, error) { return c.client.Problem(ctx, a.Code) },
		"relay.rpc": func(ctx context.Context, a arguments) (any, error) {
			var value any
			err := c.relay.RPC(ctx, a.Chain, a.Pool, &value, a.Method, a.Params...)
			return value, err
		},
		"relay.problem":      func(ctx context.Context, a arguments) (any, error) { return c.relay.Problem(ctx, a.Code) },
		"relay.contract":     func(ctx context.Context, _ arguments) (any, error) { return parsed(c.relay.ContractJSON(ctx)) },
		"relay.docs":         func(ctx context.Context, _ arguments) (any, error) { return c.relay.Docs(ctx) },
		"relay.contractText": func(ctx context.Context, _ arguments) (any, error) { return c.relay.Contract(ctx) },
		"verifyWebhook": func(_ context.Context, a arguments) (any, error) {
			v, err := watchtower.NewWebhookVerifier(a.Secrets...)
			if err != nil {
				return nil, err
			}
			header := http.Header{}
			for name, value := range a.Headers {
				header.Set(name, value)
			}
			return v.Verify(header, []byte(a.Body), time.Now())
		},
	}
}

func (c goClient) relayCalls() map[string]goCall {
	return map[string]goCall{
		"relay.create": func(ctx context.Context, a arguments) (any, error) {
			return c.relay.CreateAndWait(ctx, a.Request, a.Wait, millis(a))
		},
		"relay.createAll": func(ctx context.Context, a arguments) (any, error) { return c.relay.CreateAll(ctx, a.Requests...) },
		"relay.signers":   func(ctx context.Context, _ arguments) (any, error) { return c.relay.Signers(ctx, "") },
		"relay.signer":    func(ctx context.Context, a arguments) (any, error) { return c.relay.Signer(ctx, a.Sender) },
		"relay.lanes": func(ctx context.Context, a arguments) (any, error) {
			return collect(c.relay.Lanes(ctx, watchtower.LaneFilters{Signer: a.Sender}), a)
		},
		"relay.lane": func(ctx context.Context, a arguments) (any, error) { return c.relay.Lane(ctx, laneOf(a)) },
		"relay.diagnosis": func(ctx context.Context, a arguments) (any, error) {
			return parsed(texted(c.relay.Diagnosis(ctx, laneOf(a))))
		},
		"relay.get": func(ctx context.Context, a arguments) (any, error) { return c.relay.Get(ctx, a.ID) },
		"relay.find": func(ctx context.Context, a arguments) (any, error) {
			var f watchtower.IntentFilters
			if err := into(a.Filters, &f); err != nil {
				return nil, err
			}
			found, ok, err := c.relay.Find(ctx, f)
			if !ok {
				return nil, err
			}
			return found, err
		},
		"relay.wait": func(ctx context.Context, a arguments) (any, error) { return c.relay.Wait(ctx, a.ID, a.Wait) },
		"relay.list": func(ctx context.Context, a arguments) (any, error) {
			var f watchtower.IntentFilters
			if err := into(a.Filters, &f); err != nil {
				return nil, err
			}
			return collect(c.relay.List(ctx, f), a)
		},
		"relay.events": func(ctx context.Context, a arguments) (any, error) { return collect(c.relay.Events(ctx, a.ID), a) },
		"relay.follow": func(ctx context.Context, a arguments) (any, error) {
			return collect(c.relay.Follow(ctx, watchtower.IntentEventFilter{After: &a.After, Intent: a.ID, UntilHead: a.StopAt == nil}), a)
		},
		"relay.cancel":  func(ctx context.Context, a arguments) (any, error) { return c.relay.Cancel(ctx, a.ID, a.Reason) },
		"relay.speedUp": func(ctx context.Context, a arguments) (any, error) { return c.relay.SpeedUp(ctx, a.ID, a.Fee) },
	}
}

func (c goClient) webhookCalls() map[string]goCall {
	hooks := c.relay.Webhooks()
	return map[string]goCall{
		"relay.webhooks.list":      func(ctx context.Context, a arguments) (any, error) { return collect(hooks.List(ctx), a) },
		"relay.webhooks.get":       func(ctx context.Context, a arguments) (any, error) { return hooks.Get(ctx, a.ID) },
		"relay.webhooks.own":       func(ctx context.Context, a arguments) (any, error) { return hooks.Own(ctx, a.URL) },
		"relay.webhooks.try":       func(ctx context.Context, a arguments) (any, error) { return hooks.Try(ctx, a.URL) },
		"relay.webhooks.dead":      func(ctx context.Context, a arguments) (any, error) { return collect(hooks.Dead(ctx, a.ID), a) },
		"relay.webhooks.redeliver": func(ctx context.Context, a arguments) (any, error) { return hooks.Redeliver(ctx, a.ID, a.Notices...) },
		"relay.webhooks.enable":    func(ctx context.Context, a arguments) (any, error) { return hooks.Enable(ctx, a.ID) },
		"relay.webhooks.disable":   func(ctx context.Context, a arguments) (any, error) { return hooks.Disable(ctx, a.ID) },
	}
}

func wishOf(a arguments) watchtower.Cancel {
	return watchtower.Cancel{ChainID: a.Chain, Deployment: a.Deployment, Sender: a.Sender, GroupID: a.Group, Expires: time.Unix(a.Expires, 0), IdempotencyKey: a.Key}
}

func millis(a arguments) time.Duration { return time.Duration(a.TimeoutMilli) * time.Millisecond }

func bytesOf(texts []string) (all [][]byte, err error) {
	for _, text := range texts {
		raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		if err != nil {
			return nil, err
		}
		all = append(all, raw)
	}
	return all, nil
}

// into reads arguments, whose names are the names of a struct's fields.
func into(from map[string]any, to any) error {
	d := json.NewDecoder(strings.NewReader(shown(from)))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

func probed(err error) (any, error) { return map[string]string{"status": "ok"}, err }

func parsed(text string, err error) (any, error) { return json.RawMessage(text), err }

// collect gathers the values of an iterator: all, or those up to the first that is as StopAt.
func collect[T any](all iter.Seq2[T, error], a arguments) (any, error) {
	some := []T{}
	for one, err := range all {
		if err != nil {
			return nil, err
		}
		some = append(some, one)
		if a.StopAt != nil && matches("", plain(a.StopAt), plain(one)) == nil {
			break
		}
	}
	return some, nil
}

// laneOf is the lane of the arguments.
func laneOf(a arguments) watchtower.LaneID {
	return watchtower.LaneID{ChainID: watchtower.EVM(a.Chain), Signer: a.Sender}
}

func texted(text json.RawMessage, err error) (string, error) { return string(text), err }
