package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// webhookShown is an endpoint in the clients' API.
type webhookShown struct {
	ID           notice.EndpointID
	Origin       string
	Secrets      []string
	Known        bool
	Failures     int
	FailingSince int64
	PausedUntil  int64
	Disabled     notice.Reason
	DisabledAt   int64
	Notices      *int
}

// state describes the endpoint's state.
func (w webhookShown) state() string {
	switch {
	case !w.Known:
		return "no deliveries yet"
	case w.Disabled != "":
		return fmt.Sprintf("disabled since %s: %s", stamp(w.DisabledAt), w.Disabled)
	case w.PausedUntil != 0:
		return "failing since " + stamp(w.FailingSince) + ", paused until " + stamp(w.PausedUntil)
	case w.Failures > 0:
		return "failing since " + stamp(w.FailingSince)
	}
	return "healthy"
}

func tellWebhooks(to io.Writer, all []webhookShown) error {
	var rows [][]string
	for _, w := range all {
		rows = append(rows, []string{w.ID.String(), w.Origin, strconv.Itoa(w.Failures), w.state()})
	}
	return terminal.Table(to, "ID\tORIGIN\tFAILURES\tSTATE", rows)
}

func tellWebhook(to io.Writer, w webhookShown) error {
	if err := tellWebhooks(to, []webhookShown{w}); err != nil {
		return err
	}
	if w.Notices != nil {
		if err := terminal.Remark(to, "deliveries affected: %d", *w.Notices); err != nil {
			return err
		}
	}
	for _, secret := range w.Secrets {
		if err := terminal.Remark(to, "signed with %s", terminal.Plain(secret)); err != nil {
			return err
		}
	}
	return nil
}

func webhooks() *cobra.Command {
	parent := &cobra.Command{
		Use: "webhooks", Short: "Manage webhook endpoints and their dead letters",
		Long: "Manage webhook endpoints and their dead letters, by requests to a running relayer's API of\n" +
			"intents. An API key gives access to its client's endpoints; with the scope admin, to all\n" +
			"endpoints. URLs may be secret, so they are read from standard input. See docs/reference/relayer.md.",
	}
	parent.AddCommand(
		listWebhooks(),
		onWebhook("show ID", "Show an endpoint", http.MethodGet, nil),
		deadNotices(), redeliver(),
		onWebhook("enable ID", "Enable a disabled endpoint", http.MethodPost, []string{"enable"}),
		onWebhook("disable ID", "Disable an endpoint", http.MethodPost, []string{"disable"}),
		ofURL("find", "Show the endpoint of the URL on standard input, and its secrets", []string{"v1", "webhooks"}, nil, tellWebhook),
		ofURL("try", "Send a test message to the URL on standard input", []string{"v1", "webhooks", "try"}, undelivered, tellTried),
	)
	return parent
}

// endpointsShown is one page of a list of endpoints.
type endpointsShown struct {
	Webhooks []webhookShown
	HasMore  bool
}

func tellEndpoints(to io.Writer, p endpointsShown) error {
	if err := tellWebhooks(to, p.Webhooks); err != nil || !p.HasMore {
		return err
	}
	return terminal.Remark(to, "there are more endpoints; continue with --after %s", p.Webhooks[len(p.Webhooks)-1].ID)
}

func listWebhooks() *cobra.Command {
	var limit, after string
	cmd := remote.Asks(front, &cobra.Command{Use: "list", Short: "List endpoints", Args: cobra.NoArgs},
		func(*cobra.Command, []string) (remote.Request, error) {
			a := remote.Get("v1", "webhooks")
			a.List = "webhooks"
			a.Query = url.Values{}
			set(a.Query, "limit", limit)
			set(a.Query, "after", after)
			return a, nil
		}, tellEndpoints)
	cmd.Flags().StringVar(&limit, "limit", "", "the maximum number of endpoints")
	cmd.Flags().StringVar(&after, "after", "", "continue a list after the endpoint with this `id`")
	return cmd
}

// set adds a value to a query unless it is empty.
func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// onWebhook builds a command about one endpoint without further arguments.
func onWebhook(use, short, method string, last []string) *cobra.Command {
	return remote.Asks(front, &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)},
		func(_ *cobra.Command, args []string) (remote.Request, error) {
			return remote.Request{Method: method, Path: append([]string{"v1", "webhooks", args[0]}, last...)}, nil
		}, tellWebhook)
}

func deadNotices() *cobra.Command {
	var limit, after string
	cmd := remote.Asks(front, &cobra.Command{Use: "dead ID", Short: "List an endpoint's dead letters", Args: cobra.ExactArgs(1)},
		func(_ *cobra.Command, args []string) (remote.Request, error) {
			a := remote.Get("v1", "webhooks", args[0], "dead")
			a.List = "notices"
			a.Query = url.Values{}
			set(a.Query, "limit", limit)
			if after == "" {
				return a, nil
			}
			last, err := parseNotice(after)
			a.Query.Set("intent", last.Intent.String())
			a.Query.Set("sequence", strconv.FormatUint(last.Seq, 10))
			return a, err
		}, tellDead)
	cmd.Flags().StringVar(&limit, "limit", "", "the maximum number of dead letters")
	cmd.Flags().StringVar(&after, "after", "", "continue a list after this `delivery`, INTENT/SEQUENCE")
	return cmd
}

// deadShown is the answer that lists dead webhook deliveries.
type deadShown struct {
	Notices []struct {
		Intent   chain.IntentID
		Sequence uint64
		Attempts int
		Cause    notice.Cause
		Status   int
		LastAt   int64
		Event    struct{ Type string }
	}
	HasMore bool
}

func tellDead(to io.Writer, a deadShown) error {
	var rows [][]string
	name := ""
	for _, n := range a.Notices {
		name = fmt.Sprintf("%s/%d", n.Intent, n.Sequence)
		last := ""
		if n.LastAt != 0 {
			last = stamp(n.LastAt)
		}
		rows = append(rows, []string{name, n.Event.Type, strconv.Itoa(n.Attempts), last, came(n.Cause, n.Status)})
	}
	if err := terminal.Table(to, "DELIVERY\tTYPE\tATTEMPTS\tLAST\tREASON", rows); err != nil || !a.HasMore {
		return err
	}
	return terminal.Remark(to, "there are more dead letters; continue with --after %s", name)
}

// parseNotice parses the name of a webhook delivery.
func parseNotice(text string) (ref notice.Ref, err error) {
	id, sequence, _ := strings.Cut(text, "/")
	if ref.Intent, err = chain.ParseIntentID(id); err == nil {
		ref.Seq, err = strconv.ParseUint(sequence, 10, 63)
	}
	if err != nil {
		return ref, fmt.Errorf("%q is not a delivery, INTENT/SEQUENCE, as `relayer webhooks dead` lists it: %w", text, err)
	}
	return ref, nil
}

func redeliver() *cobra.Command {
	return remote.Asks(front, &cobra.Command{
		Use: "redeliver ID [INTENT/SEQUENCE]...", Args: cobra.MinimumNArgs(1),
		Short: "Redeliver an endpoint's dead letters: all, or the given ones",
	}, func(_ *cobra.Command, args []string) (remote.Request, error) {
		body := map[string]any{}
		var named []notice.Ref
		for _, text := range args[1:] {
			ref, err := parseNotice(text)
			if err != nil {
				return remote.Request{}, err
			}
			named = append(named, ref)
		}
		if named != nil {
			body["notices"] = named
		}
		return remote.Request{Method: http.MethodPost, Path: []string{"v1", "webhooks", args[0], "redeliver"}, Body: body}, nil
	}, tellWebhook)
}

// triedShown is the outcome of a test message.
type triedShown struct {
	ID        notice.EndpointID
	Delivered bool
	Cause     notice.Cause
	Status    int
}

// errNotDelivered is the error of a failed test message.
type errNotDelivered struct{ triedShown }

func (e errNotDelivered) Error() string { return "not delivered: " + came(e.Cause, e.Status) }

// came describes the outcome of a failed attempt.
func came(c notice.Cause, status int) string {
	switch c {
	case notice.Status:
		return "the endpoint answered " + statusText(status)
	case notice.Forbidden:
		return "the URL, or the address of its host, is not allowed"
	case notice.Name:
		return "the host name could not be resolved"
	case notice.Connect:
		return "the connection to the host failed"
	case notice.TLS:
		return "the TLS connection to the host failed or was not trusted"
	case notice.Timeout:
		return "the endpoint did not answer in time"
	case notice.Cut:
		return "the connection broke before the endpoint answered"
	case notice.Protocol:
		return "the response was not HTTP, or its header was too large"
	case notice.Unfit:
		return "the message cannot be sent: it is too large, or the endpoint has no secrets"
	case notice.Off:
		return "the endpoint is disabled"
	}
	return string(c)
}

// statusText is an HTTP status code with its registered text, if it has one.
func statusText(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + strings.ToLower(http.StatusText(status)))
}

// undelivered is the error of an answer about a test message that was not delivered.
func undelivered(answer []byte) error {
	var t triedShown
	if err := json.Unmarshal(answer, &t); err != nil || t.Delivered {
		return err
	}
	return errNotDelivered{t}
}

func tellTried(to io.Writer, t triedShown) error {
	if !t.Delivered {
		return nil // the error says why
	}
	return terminal.Remark(to, "endpoint %s accepted the message, and answered %s", t.ID, statusText(t.Status))
}

// ofURL builds a command about a URL read from standard input.
func ofURL[T any](use, short string, path []string, check func(answer []byte) error, tell func(io.Writer, T) error) *cobra.Command {
	return remote.Asks(front, &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}, func(cmd *cobra.Command, _ []string) (remote.Request, error) {
		text, err := remote.Given(cmd)
		return remote.Request{Method: http.MethodPost, Path: path, Body: map[string]string{"url": strings.TrimSpace(string(text))}, Check: check}, err
	}, tell)
}
