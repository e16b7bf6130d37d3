package remote

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// txShown is the part of a transaction in the clients' API that is printed for people.
type txShown struct {
	ChainID   uint64
	TxHash    string
	Type      uint8
	Sender    string
	FeePayer  string
	NonceKey  string
	Nonce     uint64
	GroupID   string
	Status    string
	Finalized bool
	Canceled  bool
	Erased    bool `json:"payloadErased"`

	EligibleAt, ExpiresAt, NextActionAt, LastBroadcastAt, AcceptedAt int64
	WaitingForNonce                                                  *uint64
	WaitingSince, AccountHeldAt                                      int64
	Parked                                                           bool
	Attempts                                                         int
	LastError, Note                                                  string
	GroupPending                                                     *struct{ Reason string }

	Block   *struct{ Number uint64 }
	Receipt *struct {
		BlockNumber, Status, GasUsed uint64
		EffectiveGasPrice            string
	}
	Waited *struct {
		Reached bool
		Because string
	}
}

// stamp formats a time in seconds since 1970; empty for 0.
func stamp(unix int64) string {
	if unix == 0 {
		return ""
	}
	return time.Unix(unix, 0).UTC().Format(time.RFC3339)
}

// outcome describes the status in a few words.
func (t txShown) outcome() string {
	text := t.Status
	switch {
	case t.Receipt != nil && t.Receipt.Status == 0:
		text += ", reverted"
	case t.Canceled && t.Status != "canceled_locally":
		text += ", although canceled"
	}
	if t.Finalized {
		text += ", final"
	}
	return text
}

// waits describes the reason why the transaction waits; empty: it is unknown, or it does not wait.
func (t txShown) waits() string {
	since := ""
	if t.WaitingSince != 0 {
		since = ", since " + stamp(t.WaitingSince)
	}
	switch {
	case t.WaitingForNonce != nil && *t.WaitingForNonce < t.Nonce:
		return fmt.Sprintf("nonce %d of its sender%s", *t.WaitingForNonce, since)
	case t.WaitingForNonce != nil:
		return "the chain to reach its nonce" + since
	case t.AccountHeldAt != 0:
		return "its fee payer's balance or its access key's rights, since " + stamp(t.AccountHeldAt)
	case t.Parked:
		return "transactions with lower nonces"
	}
	return ""
}

func tellTx(to io.Writer, t txShown) error {
	var told []terminal.Property
	say := func(name, format string, args ...any) {
		if value := fmt.Sprintf(format, args...); value != "" {
			told = append(told, terminal.Property{Name: name, Value: value})
		}
	}
	say("hash", "%s", t.TxHash)
	say("chain", "%d", t.ChainID)
	say("status", "%s", t.outcome())
	say("waits for", "%s", t.waits())
	say("sender", "%s", t.Sender)
	say("fee payer", "%s", t.FeePayer)
	say("nonce", "%d, under the nonce key %s", t.Nonce, t.NonceKey)
	say("group", "%s", t.GroupID)
	if p := t.GroupPending; p != nil {
		say("group pending", "%s", p.Reason)
	}
	say("accepted", "%s", stamp(t.AcceptedAt))
	say("eligible", "%s", stamp(t.EligibleAt))
	say("expires", "%s", cmp.Or(stamp(t.ExpiresAt), "never"))
	say("attempts", "%d", t.Attempts)
	say("last broadcast", "%s", stamp(t.LastBroadcastAt))
	say("next action", "%s", stamp(t.NextActionAt))
	say("last answer", "%s", cmp.Or(t.Note, t.LastError))
	if r := t.Receipt; r != nil {
		say("mined", "block %d, %d gas at %s", r.BlockNumber, r.GasUsed, cmp.Or(r.EffectiveGasPrice, "an unknown price"))
	} else if t.Block != nil {
		say("decided by", "block %d", t.Block.Number)
	}
	if t.Waited != nil && !t.Waited.Reached {
		say("wait ended", "%s", t.Waited.Because)
	}
	return terminal.Properties(to, told)
}

// txPage is one page of a list.
type txPage struct {
	Transactions []txShown
	NextCursor   string
}

func tellTxs(to io.Writer, p txPage) error {
	var rows [][]string
	for _, t := range p.Transactions {
		rows = append(rows, []string{t.TxHash, strconv.FormatUint(t.ChainID, 10), t.outcome(), t.Sender, strconv.FormatUint(t.Nonce, 10), strconv.Itoa(t.Attempts), stamp(t.EligibleAt), t.waits()})
	}
	if err := terminal.Table(to, "HASH\tCHAIN\tSTATUS\tSENDER\tNONCE\tATTEMPTS\tELIGIBLE\tWAITS FOR", rows); err != nil || p.NextCursor == "" {
		return err
	}
	return terminal.Remark(to, "there are more transactions; continue with --cursor %s", p.NextCursor)
}

// Transactions is the command "tx".
func Transactions(at Listener, program string) *cobra.Command {
	parent := &cobra.Command{
		Use: "tx", Short: "Submit, show, list, wait for and inspect transactions",
		Long: "Submit, show, list, wait for and inspect transactions, by requests to a running service.\n" +
			"Only inspect needs no service. The service's URL comes from --url or " + at.Variable + ".",
	}
	parent.AddCommand(
		submitTxs(at, program), validateTxs(at, program), getTx(at), listTxs(at, program), waitTx(at, program),
		eventsOfTx(at), cancelTx(at), inspectTx(program),
	)
	return parent
}

// onOneChain adds the flag that is needed if a hash is known on several chains.
func onOneChain(d *Door, cmd *cobra.Command, query *url.Values) *cobra.Command {
	*query = url.Values{}
	cmd.Flags().Func("chain", "the `chain` of the transaction, if the service has it on several", func(text string) error {
		query.Set("chainId", text)
		return nil
	})
	return d.completeChain(cmd)
}

// aboutTx builds a command about one transaction.
func aboutTx[T any](at Listener, method string, cmd *cobra.Command, last []string, list string, tell func(io.Writer, T) error) *cobra.Command {
	var query url.Values
	cmd.Args = cobra.ExactArgs(1)
	d := &Door{Listener: at}
	return asks(d, onOneChain(d, cmd, &query), func(_ *cobra.Command, args []string) (Request, error) {
		return Request{Method: method, Path: append([]string{"v1", "transactions", args[0]}, last...), Query: query, List: list}, nil
	}, tell)
}

func getTx(at Listener) *cobra.Command {
	return aboutTx(at, http.MethodGet, &cobra.Command{Use: "get HASH", Aliases: []string{"show"}, Short: "Show a transaction, what it waits for, and how it ended"}, nil, "", tellTx)
}

func cancelTx(at Listener) *cobra.Command {
	return aboutTx(at, http.MethodDelete, &cobra.Command{
		Use: "cancel HASH", Short: "Stop sending a transaction whose nonce its sender has used for another",
		Long: "Stop sending a transaction whose nonce its sender has used for another. The service asks the\n" +
			"chain: if the nonce is still unused, or the transaction is mined, it refuses and says so. To stop\n" +
			"transactions whose nonces are unused, cancel their group (groups cancel), or use the nonces up.",
	}, nil, "", tellTx)
}

// trail is the answer that lists a transaction's events.
type trail struct {
	Events []struct {
		Version uint64
		Name    string
		At      time.Time
		Data    json.RawMessage
	}
}

func eventsOfTx(at Listener) *cobra.Command {
	return aboutTx(at, http.MethodGet, &cobra.Command{Use: "events HASH", Short: "List the recorded events of a transaction, oldest first"}, []string{"events"}, "events",
		func(to io.Writer, t trail) error {
			var rows [][]string
			for _, e := range t.Events {
				rows = append(rows, []string{strconv.FormatUint(e.Version, 10), e.At.UTC().Format(time.RFC3339), e.Name, string(e.Data)})
			}
			return terminal.Table(to, "VERSION\tAT\tNAME\tDATA", rows)
		})
}

func listTxs(at Listener, program string) *cobra.Command {
	var statuses []string
	filters := []struct{ name, flag, help string }{
		{"chainId", "chain", "only transactions on this `chain`"},
		{"sender", "sender", "only transactions of this `address`"},
		{"groupId", "group", "only transactions of this `group`"},
		{"limit", "limit", "the maximum `number` of transactions, at most 1000"},
		{"cursor", "cursor", "continue a list after this `cursor`, which its previous page ends with"},
	}
	d := &Door{Listener: at}
	cmd := asks(d, &cobra.Command{
		Use: "list", Short: "List transactions, newest first", Args: cobra.NoArgs,
		Example: "  " + program + " tx list --status broadcasting,retry_scheduled --sender 0x…",
	}, func(cmd *cobra.Command, _ []string) (Request, error) {
		r := Get("v1", "transactions")
		r.Query, r.List = url.Values{"status": statuses}, "transactions"
		for _, f := range filters {
			if flag := cmd.Flags().Lookup(f.flag); flag.Changed {
				r.Query.Set(f.name, flag.Value.String())
			}
		}
		return r, nil
	}, tellTxs)
	flags := cmd.Flags()
	flags.StringSliceVar(&statuses, "status", nil, "only transactions with these `statuses`, separated by commas")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statusNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	for _, f := range filters {
		flags.String(f.flag, "", f.help)
	}
	return d.completeChain(cmd)
}
