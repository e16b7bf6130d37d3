package remote

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/holiman/uint256"
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// inspected has the fields of a decoded transaction. Amounts are decimal, in the chain's smallest unit.
type inspected struct {
	Type        string              `json:"type"`
	ChainID     chain.ID            `json:"chainId"`
	Hash        chain.Hash          `json:"hash"`
	Sender      chain.Address       `json:"sender"`
	Signature   chain.SignatureKind `json:"signature"`
	AccessKey   *chain.Address      `json:"accessKey,omitempty"`
	FeePayer    *chain.Address      `json:"feePayer,omitempty"`
	FeeToken    *chain.Address      `json:"feeToken,omitempty"`
	NonceKey    chain.NonceKey      `json:"nonceKey"`
	Nonce       uint64              `json:"nonce"`
	GroupID     *chain.GroupID      `json:"groupId,omitempty"` // of a nonce key in the explicit grouping format
	ValidAfter  uint64              `json:"validAfter,omitempty"`
	ValidBefore uint64              `json:"validBefore,omitempty"`
	Gas         uint64              `json:"gas"`
	GasPrice    string              `json:"gasPrice,omitempty"`
	MaxFee      string              `json:"maxFeePerGas,omitempty"`
	MaxPriority string              `json:"maxPriorityFeePerGas,omitempty"`
	Calls       []inspectedCall     `json:"calls"`
	// Problem is the reason why nodes would refuse it now. It depends on the bytes and the clock alone.
	Problem string `json:"problem,omitempty"`
}

type inspectedCall struct {
	To    *chain.Address `json:"to"` // null: the call creates a contract
	Value string         `json:"value"`
	Input string         `json:"input"`
}

// decode decodes a transaction of any supported type. The first byte decides between Ethereum's types
// and Tempo's.
func decode(raw []byte) (signed chain.Signed, unwanted string, err error) {
	if raw[0] == tempo.Type {
		if signed, err = tempo.Decode(raw); err == nil {
			unwanted, err = tempo.Unwanted(raw)
		}
		return signed, unwanted, err
	}
	signed, err = ethereum.Decode(raw)
	return signed, "", err
}

func inspect(raw []byte, on uint64, now time.Time) (inspected, error) {
	s, unwanted, err := decode(raw)
	if err != nil {
		return inspected{}, err
	}
	shown := inspected{
		Type: fmt.Sprintf("0x%02x", s.Type), ChainID: s.Chain, Hash: s.Hash, Sender: s.Sender, Signature: s.Signature,
		AccessKey: s.AccessKey, FeePayer: s.FeePayer, FeeToken: s.FeeToken, NonceKey: s.NonceKey, Nonce: s.Nonce,
		ValidAfter: s.Window.After, ValidBefore: s.Window.Before, Gas: s.Gas,
		GasPrice: amount(s.GasPrice), MaxFee: amount(s.MaxFee), MaxPriority: amount(s.MaxPriorityFee), Problem: unwanted,
	}
	if _, explicit := s.NonceKey.Explicit(); explicit {
		id := s.NonceKey.Group()
		shown.GroupID = &id
	}
	for _, c := range s.Calls {
		shown.Calls = append(shown.Calls, inspectedCall{To: c.To, Value: amount(c.Value), Input: "0x" + hex.EncodeToString(c.Input)})
	}
	switch {
	case on != 0 && uint64(s.Chain) != on:
		shown.Problem = fmt.Sprintf("it is signed for chain %s, and not for chain %d", s.Chain, on)
	case s.Window.ClosedAt(uint64(max(now.Unix(), 0))):
		shown.Problem = "its window ended at " + stamp(int64(s.Window.Before)) //nolint:gosec // it has passed
	}
	return shown, nil
}

func amount(n *uint256.Int) string {
	if n == nil {
		return ""
	}
	return n.Dec()
}

func tellInspected(to io.Writer, t inspected) error {
	told := []terminal.Property{
		{Name: "type", Value: t.Type},
		{Name: "chain", Value: t.ChainID.String()},
		{Name: "hash", Value: t.Hash.String()},
		{Name: "sender", Value: t.Sender.String()},
		{Name: "signature", Value: string(t.Signature)},
	}
	say := func(name, value string) {
		if value != "" {
			told = append(told, terminal.Property{Name: name, Value: value})
		}
	}
	address := func(a *chain.Address) string {
		if a == nil {
			return ""
		}
		return a.String()
	}
	say("access key", address(t.AccessKey))
	say("fee payer", address(t.FeePayer))
	say("fee token", address(t.FeeToken))
	say("nonce", fmt.Sprintf("%d, under the nonce key %s", t.Nonce, t.NonceKey))
	if t.GroupID != nil {
		say("group", t.GroupID.String())
	}
	say("valid after", timeText(t.ValidAfter))
	say("valid before", timeText(t.ValidBefore))
	say("gas", strconv.FormatUint(t.Gas, 10))
	say("gas price", t.GasPrice)
	say("max fee", t.MaxFee)
	say("max priority fee", t.MaxPriority)
	for n, c := range t.Calls {
		target := "creates a contract"
		if c.To != nil {
			target = c.To.String()
		}
		say("call "+strconv.Itoa(n+1), fmt.Sprintf("%s, value %s, input %s", target, c.Value, c.Input))
	}
	say("problem", t.Problem)
	return terminal.Properties(to, told)
}

// timeText formats a time of a transaction's window; empty for 0.
func timeText(unix uint64) string {
	const year9999 = 253402300799
	if unix > year9999 {
		return strconv.FormatUint(unix, 10) + " s after 1970"
	}
	return stamp(int64(unix)) //nolint:gosec // checked above
}

func inspectTx(program string) *cobra.Command {
	var o terminal.Output
	var on uint64
	cmd := &cobra.Command{
		Use: "inspect [HEX|FILE|-]", Short: "Decode a signed transaction, without a service", Args: cobra.MaximumNArgs(1),
		Long: "Decode a signed transaction, without a service.\n\n" + givenHelp + "\n\nBytes that are no transaction end it with status 1 and the reason. problem says why a node would\n" +
			"refuse the transaction, as far as its bytes and the time show it.",
		Example: "  " + program + " tx inspect 0x76… -o json | jq .hash",
		RunE: func(cmd *cobra.Command, args []string) error {
			raws, err := rawTxs(cmd, args)
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			if len(raws) > 1 {
				return terminal.Misuse("there are %d transactions, and inspect decodes one", len(raws))
			}
			shown, err := inspect(raws[0], on, time.Now())
			if err != nil {
				return fmt.Errorf("these bytes are no transaction that can be delivered: %w", err)
			}
			answer, err := json.Marshal(shown)
			if err != nil {
				return err
			}
			return terminal.Show(cmd, &o, "", answer, tellInspected)
		},
	}
	cmd.Flags().Uint64Var(&on, "chain", 0, "the `chain` that it should be signed for")
	o.Flags(cmd)
	return cmd
}
