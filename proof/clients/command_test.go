package clients_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// commands performs calls with the command line. Calls without a command are performed with the
// Go client, so that the scenario goes on.
type commands struct {
	other goClient
	env   []string
	w     *world
}

// A command is a call's command line, its standard input, and the member of the answer that is
// the call's result; none: the whole answer. lines: the output is a line of JSON for each event.
type command struct {
	args   []string
	in     string
	member string
	lines  bool
}

func newCommands(t *testing.T, w *world) commands {
	t.Helper()
	delivery, relay := w.gates["delivery"], w.gates["relay"]
	return commands{
		other: newGoClient(w), w: w,
		env: []string{"WATCHTOWER_URL=" + delivery.url, "WATCHTOWER_API_KEY=" + delivery.key, "RELAYER_URL=" + relay.url, "RELAYER_API_KEY=" + relay.key},
	}
}

// name is the call as the table of operations has it.
func (commands) name(call string) string { return "command " + call }

// words are a call's command, such as "watchtower tx submit"; empty: there is none.
func (commands) words(call string) string {
	all := map[string]string{
		"client.submit": "watchtower tx submit", "client.validate": "watchtower tx validate", "client.get": "watchtower tx get",
		"client.wait": "watchtower tx wait", "client.list": "watchtower tx list", "client.events": "watchtower tx events",
		"client.markStale": "watchtower tx cancel", "client.follow": "watchtower tail", "client.groups": "watchtower groups list",
		"client.group": "watchtower groups get", "cancelMessage": "watchtower groups cancel-message", "client.cancelGroup": "watchtower groups cancel",
		"relay.create": "relayer intents create", "relay.createAll": "relayer intents create", "relay.get": "relayer intents get",
		"relay.list": "relayer intents list", "relay.find": "relayer intents list", "relay.events": "relayer intents events",
		"relay.cancel": "relayer intents cancel", "relay.speedUp": "relayer intents speed-up",
		"relay.webhooks.list": "relayer webhooks list", "relay.webhooks.get": "relayer webhooks show", "relay.webhooks.own": "relayer webhooks find",
		"relay.webhooks.try": "relayer webhooks try", "relay.webhooks.dead": "relayer webhooks dead", "relay.webhooks.redeliver": "relayer webhooks redeliver",
		"relay.webhooks.enable": "relayer webhooks enable", "relay.webhooks.disable": "relayer webhooks disable",
	}
	return all[call]
}

func (c commands) perform(ctx context.Context, call string, with map[string]any) (result, error) {
	var a arguments
	if err := into(with, &a); err != nil {
		return result{}, err
	}
	line, ok := commandOf(call, a)
	words := strings.Fields(c.words(call))
	if !ok || len(words) == 0 {
		return c.other.perform(ctx, call, with)
	}
	c.w.called(c.name(call))
	args := append(words[1:], line.args...)
	if !line.lines {
		args = append(args, "-o", "json")
	}
	done, err := rig.Run(ctx, strings.NewReader(line.in), c.env, programs[words[0]], args...)
	switch {
	case err != nil:
		return result{}, err
	case done.Stdout == "":
		return result{Error: &failure{Kind: "problem"}, Says: done.Says()}, nil
	}
	if line.lines {
		some := []any{}
		for text := range strings.Lines(done.Stdout) {
			some = append(some, decoded([]byte(text)))
		}
		return result{Value: some}, nil
	}
	value := decoded([]byte(done.Stdout))
	if line.member != "" {
		members, ok := value.(map[string]any)
		if !ok {
			return result{}, fmt.Errorf("%s answers %s", c.words(call), done.Stdout)
		}
		value = members[line.member]
	}
	if items, ok := value.([]any); ok && a.StopAt != nil { // as the clients stop there
		if i := slices.IndexFunc(items, func(item any) bool { return matches("", plain(a.StopAt), item) == nil }); i >= 0 {
			value = items[:i+1]
		}
	}
	return result{Value: value}, nil
}

// commandOf is the command line for a call's arguments; ok is false if commands cannot express
// them.
func commandOf(call string, a arguments) (line command, ok bool) {
	on := []string{"--chain", fmt.Sprint(a.Chain)}
	switch call {
	case "client.submit", "client.validate":
		return command{args: append(on, a.Raws...), member: "results"}, a.Key == "" && a.Wait == ""
	case "client.get", "client.markStale":
		return command{args: []string{a.Hash}}, true
	case "client.wait":
		return command{args: []string{a.Hash, "--for", string(a.Wait)}}, true
	case "client.events":
		return command{args: []string{a.Hash}, member: "events"}, true
	case "client.list":
		return command{args: []string{"--sender", fmt.Sprint(a.Filters["sender"]), "--status", "executed"}, member: "transactions"}, true
	case "client.follow":
		return command{args: []string{"--after", fmt.Sprint(a.After), "--until", "head", "--sender", a.Sender, "--json"}, lines: true}, a.StopAt == nil
	case "client.groups":
		return command{args: append(on, a.Sender)}, true
	case "client.group":
		return command{args: append(on, a.Sender, a.Group)}, true
	case "client.cancelGroup":
		return command{args: append(on, a.Sender, a.Group, "--expires", fmt.Sprint(a.Expires), "--signature", a.Signature)}, a.Expires != 0
	}
	return relayCommandOf(call, a)
}

func relayCommandOf(call string, a arguments) (line command, ok bool) {
	switch call {
	case "relay.create":
		line = command{in: shown(a.Request)}
		if a.Wait != "" {
			line.args = []string{"--wait", string(a.Wait), "--timeout", millis(a).String()}
		}
		return line, true
	case "relay.createAll":
		return command{in: shown(a.Requests), member: "results"}, true
	case "relay.get":
		return command{args: []string{a.ID}}, true
	case "relay.events":
		return command{args: []string{a.ID}, member: "events"}, true
	case "relay.list":
		return command{args: []string{"--subject", fmt.Sprint(a.Filters["subject"]), "--status", "completed"}, member: "intents"}, true
	case "relay.cancel":
		return command{args: []string{a.ID, "--reason", a.Reason}}, true
	case "relay.speedUp":
		return command{args: []string{a.ID, a.Fee}}, true
	case "relay.webhooks.list":
		return command{member: "webhooks"}, true
	case "relay.webhooks.get", "relay.webhooks.enable", "relay.webhooks.disable":
		return command{args: []string{a.ID}}, true
	case "relay.webhooks.own", "relay.webhooks.try":
		return command{in: a.URL}, true
	case "relay.webhooks.dead":
		return command{args: []string{a.ID}, member: "notices"}, true
	case "relay.webhooks.redeliver":
		line.args = []string{a.ID}
		for _, n := range a.Notices {
			line.args = append(line.args, fmt.Sprintf("%s/%d", n.Intent, n.Sequence))
		}
		return line, true
	}
	return command{}, false
}

// unhindered is a scenario for commands: without faults, because a command that meets one ends
// and is entered again; and without steps that fail, whose texts are for people.
func unhindered(s scenario) (all scenario) {
	for _, one := range s.Steps {
		if one.Fails != nil {
			continue
		}
		if len(one.Faults) > 0 {
			one.Faults, one.Expect = nil, withoutKnown(one.Expect)
		}
		all.Steps = append(all.Steps, one)
	}
	return all
}

// withoutKnown removes the expectation that an earlier try of the same request was carried out.
func withoutKnown(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, member := range v {
			if name != "alreadyKnown" {
				all[name] = withoutKnown(member)
			}
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = withoutKnown(item)
		}
		return all
	}
	return v
}
