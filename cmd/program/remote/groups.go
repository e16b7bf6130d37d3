package remote

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Groups is the command "groups".
func Groups(at Listener, program string) *cobra.Command {
	parent := &cobra.Command{
		Use: "groups", Short: "List, show and cancel groups of transactions",
		Long: "List, show and cancel groups, by requests to a running service. A group is the transactions of\n" +
			"one sender under one nonce key. See docs/howto/cancel.md.",
	}
	parent.AddCommand(listGroups(at), getGroup(at), cancelMessage(at), cancelGroup(at, program))
	return parent
}

func listGroups(at Listener) *cobra.Command {
	var on string
	var active bool
	d := &Door{Listener: at}
	cmd := asks(d, &cobra.Command{Use: "list SENDER", Short: "List a sender's groups, newest first", Args: cobra.ExactArgs(1)},
		func(_ *cobra.Command, args []string) (Request, error) {
			r := Get("v1", "senders", args[0], "groups")
			r.Query = url.Values{"limit": {"1000"}}
			if on != "" {
				r.Query.Set("chainId", on)
			}
			if active {
				r.Query.Set("active", "true")
			}
			return r, nil
		}, func(to io.Writer, all []watchtower.Group) error {
			var rows [][]string
			for _, g := range all {
				next := ""
				if g.NextPaymentAt != nil {
					next = stamp(*g.NextPaymentAt)
				}
				rows = append(rows, []string{g.GroupID, strconv.FormatUint(g.ChainID, 10), g.NonceKey, stamp(g.StartAt), stamp(g.EndAt), next})
			}
			return terminal.Table(to, "GROUP\tCHAIN\tNONCE KEY\tSTART\tEND\tNEXT PAYMENT", rows)
		})
	cmd.Flags().StringVar(&on, "chain", "", "only groups on this `chain`")
	cmd.Flags().BoolVar(&active, "active", false, "only groups that end in the future")
	return d.completeChain(cmd)
}

func getGroup(at Listener) *cobra.Command {
	var query url.Values
	d := &Door{Listener: at}
	return asks(d, onOneChain(d, &cobra.Command{
		Use: "get SENDER GROUP", Aliases: []string{"show"}, Short: "Show a group's members, and which nonces its owner has to use up to cancel it for good", Args: cobra.ExactArgs(2),
	}, &query), func(_ *cobra.Command, args []string) (Request, error) {
		query.Set("limit", "1000")
		return Request{Method: "GET", Path: []string{"v1", "senders", args[0], "groups", args[1]}, Query: query, List: "members"}, nil
	}, tellGroup)
}

func tellGroup(to io.Writer, g watchtower.GroupPlan) error {
	var rows [][]string
	for _, m := range g.Members {
		status := string(m.Status)
		if m.Finalized {
			status += ", final"
		}
		waits := ""
		if m.WaitingForNonce != nil {
			waits = strconv.FormatUint(*m.WaitingForNonce, 10)
		}
		rows = append(rows, []string{strconv.FormatUint(m.Nonce, 10), m.TxHash, status, stamp(m.EligibleAt), stamp(m.ExpiresAt), waits})
	}
	if err := terminal.Table(to, "NONCE\tHASH\tSTATUS\tELIGIBLE\tEXPIRES\tWAITS FOR NONCE", rows); err != nil {
		return err
	}
	switch plan := g.CancelPlan; {
	case plan.AlreadyInvalidated == nil:
		return terminal.Remark(to, "to cancel it for good, use up the nonces %s; whether they are used up is unknown: %s", ranges(plan.Nonces), plan.Reason)
	case *plan.AlreadyInvalidated:
		return terminal.Remark(to, "all nonces are used up: the chain takes no member any more")
	default:
		return terminal.Remark(to, "to cancel it for good, use up the nonces %s under the nonce key %s", ranges(plan.Nonces), plan.NonceKey)
	}
}

// ranges formats rising numbers, such as 3-5, 9.
func ranges(all []uint64) string {
	var parts []string
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && all[last+1] == all[last]+1 {
			last++
		}
		part := strconv.FormatUint(all[i], 10)
		if last > i {
			part += "-" + strconv.FormatUint(all[last], 10)
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ", ")
}

// wish holds the flags that a cancel and its message share.
type wish struct {
	on      uint64
	expires int64
}

func (w *wish) flags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Uint64Var(&w.on, "chain", 0, "the `chain` of the group")
	cmd.Flags().Int64Var(&w.expires, "expires", 0, "when the signature becomes invalid, in `seconds` since 1970; at most 24 hours ahead (cancel-message: in one hour)")
	_ = cmd.MarkFlagRequired("chain") // the flag exists
	return cmd
}

// cancel is the message for the arguments SENDER and GROUP.
func (w *wish) cancel(cmd *cobra.Command, d *Door, args []string) (*watchtower.Client, watchtower.Cancel, error) {
	client, err := d.Client()
	if err != nil {
		return nil, watchtower.Cancel{}, terminal.With(terminal.Usage, err)
	}
	health, err := client.Health(cmd.Context())
	if err != nil {
		return nil, watchtower.Cancel{}, d.Explained(http.MethodGet, err)
	}
	return client, watchtower.Cancel{ChainID: w.on, Deployment: health.Deployment, Sender: args[0], GroupID: args[1], Expires: time.Unix(w.expires, 0)}, nil
}

func cancelMessage(at Listener) *cobra.Command {
	d := Door{Listener: at}
	var w wish
	cmd := &cobra.Command{
		Use: "cancel-message SENDER GROUP", Short: "Print the message that a group's owner signs to cancel it", Args: cobra.ExactArgs(2),
		Long: "Print the message that a group's owner signs to cancel it: typed data for eth_signTypedData_v4\n" +
			"(EIP-712). Its signature, with the same --expires, is the argument of groups cancel.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.expires == 0 {
				w.expires = time.Now().Add(time.Hour).Unix()
			}
			_, cancel, err := w.cancel(cmd, &d, args)
			if err != nil {
				return err
			}
			text, err := cancel.TypedData()
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
			}
			return err
		},
	}
	d.Connection(cmd, "url")
	return d.completeChain(w.flags(cmd))
}

func cancelGroup(at Listener, program string) *cobra.Command {
	d := Door{Listener: at}
	var w wish
	var signature string
	cmd := &cobra.Command{
		Use: "cancel SENDER GROUP", Short: "Stop sending a group's transactions, with its owner's signature", Args: cobra.ExactArgs(2),
		Long: "Stop sending a group's transactions and erase their bytes, with its owner's signature over the\n" +
			"message that cancel-message prints. The chain may still include what nodes have already.",
		Example: "  " + program + " groups cancel-message 0x… 0x… --chain 42431 > message.json\n" +
			"  " + program + " groups cancel 0x… 0x… --chain 42431 --expires $(jq -r .message.expires message.json) --signature 0x…",
		RunE: func(cmd *cobra.Command, args []string) error {
			signed, err := hex.DecodeString(strings.TrimPrefix(signature, "0x"))
			if err != nil || len(signed) == 0 {
				return terminal.Misuse("--signature is not hex")
			}
			if w.expires == 0 {
				return terminal.Misuse("--expires is the time in the signed message, as cancel-message prints it")
			}
			client, cancel, err := w.cancel(cmd, &d, args)
			if err != nil {
				return err
			}
			done, err := client.CancelGroup(cmd.Context(), cancel, func([]byte) ([]byte, error) { return signed, nil })
			if err != nil {
				return d.Explained(http.MethodPost, err)
			}
			answer, err := json.Marshal(done)
			if err != nil {
				return err
			}
			return Show(cmd, &d, "members", answer, tellCanceled)
		},
	}
	cmd.Flags().StringVar(&signature, "signature", "", "the owner's signature, in `hex`")
	_ = cmd.MarkFlagRequired("signature") // the flag exists
	return d.completeChain(d.Flags(w.flags(cmd)))
}

func tellCanceled(to io.Writer, c watchtower.CanceledGroup) error {
	var rows [][]string
	for _, m := range c.Members {
		rows = append(rows, []string{strconv.FormatUint(m.Nonce, 10), m.TxHash, string(m.Status), strconv.FormatBool(m.Canceled)})
	}
	if err := terminal.Table(to, "NONCE\tHASH\tSTATUS\tCANCELED", rows); err != nil {
		return err
	}
	return terminal.Remark(to, "%d transactions were canceled", c.Canceled)
}
