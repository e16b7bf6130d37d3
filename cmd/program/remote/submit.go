package remote

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	watchtower "github.com/tempo-watchtower/watchtower/clients/go"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// submitMost is the most transactions of one request.
const submitMost = 1000

const givenHelp = `Each argument is the bytes of a signed transaction in hex, with or without 0x; the name of a
file with such bytes, one transaction a line; or - for standard input. Without an argument,
standard input is read.`

// rawTxs reads the transactions that arguments name.
func rawTxs(cmd *cobra.Command, args []string) (all [][]byte, err error) {
	if len(args) == 0 {
		args = []string{"-"}
	}
	for _, arg := range args {
		if arg != "-" {
			if raw, err := hex.DecodeString(strings.TrimPrefix(arg, "0x")); err == nil && len(raw) > 0 {
				all = append(all, raw)
				continue
			}
		}
		text, err := textOf(cmd, arg)
		if err != nil {
			return nil, err
		}
		some, err := rawLines(arg, text)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no transaction in the arguments, files or standard input")
	}
	return all, nil
}

func textOf(cmd *cobra.Command, arg string) ([]byte, error) {
	if arg == "-" {
		return Given(cmd)
	}
	f, err := os.Open(arg)
	if err != nil {
		return nil, fmt.Errorf("%s is neither hex nor a file that can be read: %w", shortened(arg), errors.Unwrap(err))
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, givenMost+1))
	if err == nil && len(text) > givenMost {
		err = fmt.Errorf("%s has more than %d bytes", arg, givenMost)
	}
	return text, err
}

func shortened(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "…"
	}
	return strconv.Quote(text)
}

// rawLines reads transactions, one a line. Empty lines and lines that begin with # count for nothing.
func rawLines(name string, text []byte) (all [][]byte, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, givenMost)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		raw, err := hex.DecodeString(strings.TrimPrefix(strings.Trim(line, `"',`), "0x"))
		if err != nil || len(raw) == 0 {
			return nil, fmt.Errorf("line %d of %s is not the hex of a transaction", n, strings.Replace(name, "-", "standard input", 1))
		}
		all = append(all, raw)
	}
	return all, lines.Err()
}

// RefusedError is the error of a command whose transactions or intents were not all accepted.
type RefusedError struct{ Refused, Of int }

func (e RefusedError) Error() string {
	return fmt.Sprintf("%d of %d were refused", e.Refused, e.Of)
}

// ExitStatus is the exit status of a command with this error.
func (RefusedError) ExitStatus() terminal.Status { return terminal.Refused }

func submitTxs(at Listener, program string) *cobra.Command {
	return sends(at, &cobra.Command{
		Use: "submit [HEX|FILE|-]...", Short: "Submit signed transactions for delivery",
		Long: givenHelp + "\n\nA transaction that is accepted will be delivered, whatever fails from then on. To submit it\n" +
			"again changes nothing. The exit status is 3 if a transaction is refused.",
		Example: "  " + program + " tx submit --chain 42431 0x76…\n  " + program + " tx submit --chain 42431 payroll.txt -o csv",
	}, http.MethodPost, (*watchtower.Client).Submit)
}

func validateTxs(at Listener, program string) *cobra.Command {
	return sends(at, &cobra.Command{
		Use: "validate [HEX|FILE|-]...", Short: "Report whether the service would accept transactions, and submit nothing",
		Long:    givenHelp + "\n\nThe exit status is 3 if a transaction would be refused.",
		Example: "  " + program + " tx validate --chain 42431 0x76…",
	}, http.MethodGet, (*watchtower.Client).Validate) // a request that changes nothing
}

// sends builds a command that sends transactions in requests of submitMost.
func sends(at Listener, cmd *cobra.Command, method string, send sending) *cobra.Command {
	d := Door{Listener: at}
	var on uint64
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		raws, err := rawTxs(cmd, args)
		if err != nil {
			return terminal.With(terminal.Usage, err)
		}
		client, err := d.Client()
		if err != nil {
			return terminal.With(terminal.Usage, err)
		}
		var all results
		for len(raws) > 0 {
			some := raws[:min(len(raws), submitMost)]
			answers, err := send(client, cmd.Context(), on, some...)
			if err != nil {
				return errors.Join(d.Explained(method, err), all.show(cmd, &d))
			}
			all.Results, raws = append(all.Results, answers...), raws[len(some):]
		}
		return all.show(cmd, &d)
	}
	cmd.Flags().Uint64Var(&on, "chain", 0, "the `chain` that the transactions are signed for")
	_ = cmd.MarkFlagRequired("chain") // the flag exists
	return d.completeChain(d.Flags(cmd))
}

// results are the answers for some transactions, in their order.
type results struct {
	Results []watchtower.Result `json:"results"`
}

func (r results) show(cmd *cobra.Command, d *Door) error {
	answer, err := json.Marshal(r)
	if err == nil {
		err = Show(cmd, d, "results", answer, tellResults)
	}
	refused := RefusedError{Of: len(r.Results)}
	for _, one := range r.Results {
		if !one.OK {
			refused.Refused++
		}
	}
	if err == nil && refused.Refused > 0 {
		return refused
	}
	return err
}

func tellResults(to io.Writer, r results) error {
	var rows [][]string
	for n, one := range r.Results {
		row := []string{strconv.Itoa(n + 1), one.TxHash, string(one.Status), one.Sender, strconv.FormatUint(one.Nonce, 10), stamp(one.EligibleAt), ""}
		switch {
		case one.OK && one.AlreadyKnown:
			row[6] = "known already"
		case !one.OK:
			row[2], row[4], row[6] = "refused", "", "no reason given"
			if one.Problem != nil {
				row[6] = one.Problem.Error()
			}
		}
		rows = append(rows, row)
	}
	return terminal.Table(to, "NUMBER\tHASH\tSTATUS\tSENDER\tNONCE\tELIGIBLE\tREMARK", rows)
}
