package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// intentShown is the part of an intent in the clients' API that is printed here.
type intentShown struct {
	ID      chain.IntentID
	Status  intent.Status
	Client  string
	Key     string
	ChainID chain.ID
	Signer  *chain.Address
	Pool    string
	Subject string
	Place   *struct {
		Signer   chain.Address
		NonceKey chain.NonceKey
		Nonce    uint64
	}
	Attempts []struct {
		Kind   intent.AttemptKind
		TxHash chain.Hash
		At     int64

		MaxFee         string `json:"maxFeePerGas"`
		MaxPriorityFee string `json:"maxPriorityFeePerGas"`
	}
	LeastFee string `json:"leastFeePerGas"`
	TxHash   *chain.Hash
	Receipt  *struct {
		Block  shownBlock
		Status uint64
	}
	Confirmations []shownBlock
	Stopping      *struct{ Reason, Detail string }
	WaitingFor    *struct{ Code, Detail string }
	WaitingSince  int64
	Outcome       *struct {
		Reason, Detail string
		TxHash         *chain.Hash
		Block          *shownBlock
	}
	RequestedAt  int64
	AlreadyKnown *bool
	Waited       *waited
}

// waited is how a wait ended.
type waited struct {
	For     string
	Reached bool
	Because string
}

type shownBlock struct {
	Number uint64
	Hash   chain.Hash
}

// landed describes the result of a mined transaction.
func (i intentShown) landed() string {
	for _, a := range i.Attempts {
		if a.TxHash == *i.TxHash && a.Kind == intent.NoOp {
			return ": the no-op, not the intent's calls"
		}
	}
	if i.Receipt.Status == 0 {
		return ": reverted"
	}
	return ""
}

// from returns the requested signer or pool.
func (i intentShown) from() string {
	if i.Signer != nil {
		return i.Signer.String()
	}
	return "pool " + i.Pool
}

// nonce formats the intent's nonce.
func (i intentShown) nonce() string {
	if i.Place == nil {
		return ""
	}
	return strconv.FormatUint(i.Place.Nonce, 10)
}

func stamp(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

func tellIntents(to io.Writer, all []intentShown) error {
	var rows [][]string
	for _, i := range all {
		rows = append(rows, []string{i.ID.String(), string(i.Status), i.ChainID.String(), i.from(), i.nonce(), i.Key, i.Subject, stamp(i.RequestedAt)})
	}
	return terminal.Table(to, "ID\tSTATUS\tCHAIN\tSIGNED BY\tNONCE\tKEY\tSUBJECT\tREQUESTED", rows)
}

// tellIntent prints an intent, one line per known property.
func tellIntent(to io.Writer, i intentShown) error {
	var told []terminal.Property
	say := func(what, format string, args ...any) {
		told = append(told, terminal.Property{Name: what, Value: fmt.Sprintf(format, args...)})
	}
	say("id", "%s", i.ID)
	say("status", "%s", i.Status)
	say("key", "%s", i.Key)
	if i.Client != "" {
		say("client", "%s", i.Client)
	}
	say("to be signed by", "%s, on chain %s", i.from(), i.ChainID)
	say("requested", "%s", stamp(i.RequestedAt))
	if p := i.Place; p != nil {
		say("nonce", "%d of %s, under the nonce key %s", p.Nonce, p.Signer, p.NonceKey)
	}
	for n, a := range i.Attempts {
		offers := ""
		if a.MaxFee != "" {
			offers = fmt.Sprintf(", offers %s per unit of gas, with a tip of %s", a.MaxFee, a.MaxPriorityFee)
		}
		say("attempt "+strconv.Itoa(n+1), "%s, %s, %s%s", a.Kind, a.TxHash, stamp(a.At), offers)
	}
	if i.LeastFee != "" {
		say("next attempt offers at least", "%s", i.LeastFee)
	}
	if r := i.Receipt; r != nil && i.TxHash != nil {
		say("mined", "%s, in block %d, %d confirmations%s", i.TxHash, r.Block.Number, len(i.Confirmations), i.landed())
	}
	if f := i.WaitingFor; f != nil {
		since := ""
		if i.WaitingSince != 0 {
			since = ", since " + stamp(i.WaitingSince)
		}
		say("waits for", "%s %s%s", f.Code, f.Detail, since)
	}
	if s := i.Stopping; s != nil {
		say("stopping", "%s %s", s.Reason, s.Detail)
	}
	if o := i.Outcome; o != nil && o.Reason+o.Detail != "" {
		say("reason", "%s %s", o.Reason, o.Detail)
	}
	if i.Waited != nil && !i.Waited.Reached {
		say("wait ended", "%s", i.Waited.Because)
	}
	return terminal.Properties(to, told)
}

func intents() *cobra.Command {
	parent := &cobra.Command{
		Use: "intents", Short: "Create, show, cancel and speed up intents",
		Long: "Create, show, cancel and speed up intents, by requests to a running relayer's API of intents.\n" +
			"An API key gives access to its client's intents; with the scope admin, to all intents.\n" +
			"See docs/reference/relayer.md.",
	}
	parent.AddCommand(
		createIntents(), getIntent(), trailOfIntent(), listIntents(),
		wishIntent("cancel ID", "Cancel an intent", cobra.ExactArgs(1), func(cmd *cobra.Command) func([]string) (string, any) {
			reason := cmd.Flags().String("reason", "", "the reason, for the log")
			return func([]string) (string, any) { return "cancel", map[string]any{"reason": *reason} }
		}),
		wishIntent("speed-up ID FEE", "Make the next attempt offer at least FEE per unit of gas", cobra.ExactArgs(2), func(cmd *cobra.Command) func([]string) (string, any) {
			cmd.Long = "Make the next attempt offer at least FEE per unit of gas, in the chain's smallest unit (wei). get shows\n" +
				"the offer of each attempt. FEE must be at least a tenth above an earlier speed-up, and within the\n" +
				"ceilings of the intent and of the relayer. The attempt is made at once if the last one offered less."
			cmd.Example = "  relayer intents get 0x…                     # attempt 1 … offers 1215733890 per unit of gas\n" +
				"  relayer intents speed-up 0x… 2500000000"
			return func(args []string) (string, any) { return "speed-up", map[string]any{"feePerGas": args[1]} }
		}),
	)
	return parent
}

func getIntent() *cobra.Command {
	var w waiting
	return remote.Asks(front, w.flags(&cobra.Command{Use: "get ID", Aliases: []string{"show"}, Short: "Show an intent, what it waits for, and how it ended", Args: cobra.ExactArgs(1)}),
		func(_ *cobra.Command, args []string) (remote.Request, error) {
			return w.of(remote.Get("v1", "intents", args[0])), nil
		}, tellIntent)
}

// trailShown is the history of an intent.
type trailShown struct {
	Events []struct {
		Sequence uint64
		Type     string
		At       time.Time
		Data     json.RawMessage
	}
	HasMore bool
}

func tellTrail(to io.Writer, t trailShown) error {
	var rows [][]string
	for _, e := range t.Events {
		rows = append(rows, []string{strconv.FormatUint(e.Sequence, 10), e.At.UTC().Format(time.RFC3339), e.Type, string(e.Data)})
	}
	if err := terminal.Table(to, "SEQUENCE\tAT\tTYPE\tDATA", rows); err != nil || !t.HasMore {
		return err
	}
	return terminal.Remark(to, "there are more events; continue with --after %d", t.Events[len(t.Events)-1].Sequence)
}

func trailOfIntent() *cobra.Command {
	var after uint64
	cmd := remote.Asks(front, &cobra.Command{Use: "events ID", Short: "List an intent's public events, in order", Args: cobra.ExactArgs(1)},
		func(_ *cobra.Command, args []string) (remote.Request, error) {
			a := remote.Get("v1", "intents", args[0], "events")
			a.List = "events"
			a.Query = url.Values{"after": {strconv.FormatUint(after, 10)}}
			return a, nil
		}, tellTrail)
	cmd.Flags().Uint64Var(&after, "after", 0, "only events after this `sequence`")
	return cmd
}

// pageShown is one page of a list of intents.
type pageShown struct {
	Intents    []intentShown
	NextCursor string
}

func tellPage(to io.Writer, p pageShown) error {
	if err := tellIntents(to, p.Intents); err != nil || p.NextCursor == "" {
		return err
	}
	return terminal.Remark(to, "there are more intents; continue with --cursor %s", p.NextCursor)
}

func listIntents() *cobra.Command {
	var statuses []string
	filters := []struct{ name, flag, help string }{
		{"chainId", "chain", "only intents on this `chain`"},
		{"client", "client", "only this client's intents"},
		{"signer", "signer", "only intents that this `address` signs; with --key, only intents requested from it"},
		{"pool", "pool", "only intents requested from this pool"},
		{"key", "key", "only intents with this idempotency `key`"},
		{"hash", "hash", "only intents with an attempt of this transaction `hash`"},
		{"subject", "subject", "only intents of this subject"},
		{"limit", "limit", "the maximum number of intents"},
		{"cursor", "cursor", "continue a list after this cursor, which its previous page ends with"},
	}
	cmd := remote.Asks(front, &cobra.Command{
		Use: "list", Short: "List intents, newest first", Args: cobra.NoArgs,
		Example: "  relayer intents list --status waiting,assigned --chain 42431",
	}, func(cmd *cobra.Command, _ []string) (remote.Request, error) {
		a := remote.Get("v1", "intents")
		a.List = "intents"
		a.Query = url.Values{"status": statuses}
		for _, f := range filters {
			if flag := cmd.Flags().Lookup(f.flag); flag.Changed { // the empty string is a client, too
				a.Query.Set(f.name, flag.Value.String())
			}
		}
		return a, nil
	}, tellPage)
	flags := cmd.Flags()
	flags.StringSliceVar(&statuses, "status", nil, "only intents with these statuses, separated by commas")
	for _, f := range filters {
		flags.String(f.flag, "", f.help)
	}
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statusNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// wishIntent builds a command that sends a client's command about an intent. of returns a
// function from the arguments to the last path segment and the body.
func wishIntent(use, short string, args cobra.PositionalArgs, of func(*cobra.Command) func(args []string) (last string, body any)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: args}
	what := of(cmd)
	return remote.Asks(front, cmd, func(_ *cobra.Command, args []string) (remote.Request, error) {
		last, body := what(args)
		return remote.Request{Method: http.MethodPost, Path: []string{"v1", "intents", args[0], last}, Body: body}, nil
	}, tellIntent)
}

// statusNames are the values of --status.
func statusNames() []string {
	var all []string
	for _, s := range []intent.Status{
		intent.StatusWaiting, intent.StatusAssigned, intent.StatusSubmitted, intent.StatusCanceling,
		intent.StatusMined, intent.StatusCompleted, intent.StatusFailed, intent.StatusCanceled,
	} {
		all = append(all, string(s))
	}
	return all
}
