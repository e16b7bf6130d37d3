package doctor

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	delivery "github.com/tempo-watchtower/watchtower/cmd/program/doctor"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Tell writes a diagnosis as text.
func Tell(to io.Writer, d Diagnosis) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	say := func(what, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", what, terminal.Plain(fmt.Sprintf(format, args...))) //nolint:errcheck // Flush tells
	}
	fmt.Fprintf(w, "chain %s, %s, nonce key %s\n", d.Chain, d.Signer, d.NonceKey) //nolint:errcheck // Flush tells
	say("cursor", "%s", number(d.Cursor))
	if d.Wants != nil {
		say("chain's next nonce", "%d, as of block %d (%d of %d endpoints agree)", *d.Wants, d.Block, d.Agreed, d.Asked)
	} else {
		say("chain's next nonce", "unknown")
	}
	if d.Pending != nil {
		say("pending nonce", "%d", *d.Pending)
	}
	say("in flight", "%d of %d", d.InFlight, d.Room)
	if d.Token > 0 {
		lease := "its lease has ended"
		switch {
		case d.Lease.Unknown != "":
			lease = "its lease is unknown"
		case d.Lease.Runs && d.Lease.Holder != d.Holder:
			lease = "the lease belongs to " + d.Lease.Holder
		case d.Lease.Runs:
			lease = "its lease is valid"
		}
		say("holder", "%s, token %d, since %s; %s", d.Holder, d.Token, stamp(d.Opened), lease)
	}
	say("signer", "%s, balance %s, threshold %s", orNone(string(d.Status)), amount(d.Balance), d.Threshold)
	if d.BaseFee != nil {
		say("base fee", "%s in the next block; the ceiling is %s", d.BaseFee, d.Ceiling)
	}
	if front := d.Front; front != nil {
		say("lowest open nonce", "%d, %s, since %s", front.Nonce, holderOf(front), stamp(front.Since))
		for i, a := range front.Attempts {
			what := "attempt"
			if a.NoOp {
				what = "no-op"
			}
			say("  "+what+" "+strconv.Itoa(i+1), "%s, %s, at most %s per unit of gas, %s%s", a.Hash, stamp(a.At), a.Fee.MaxFee, orNone(string(a.Status)), known(a.Known))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	all := make([]delivery.Finding, len(d.Findings))
	for i, f := range d.Findings {
		all[i] = delivery.Finding(f)
	}
	return delivery.TellFindings(to, all)
}

func holderOf(w *Waiting) string {
	if w.Intent.IsZero() {
		return "a no-op"
	}
	return fmt.Sprintf("intent %s (%s)", w.Intent, w.Status)
}

func known(k *bool) string {
	switch {
	case k == nil:
		return ""
	case *k:
		return ", a node has it"
	}
	return ", no queried node has it"
}

func number(n *uint64) string {
	if n == nil {
		return "not known yet"
	}
	return strconv.FormatUint(*n, 10)
}

func orNone(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// TellFillings writes how a lane's holes would be filled.
func TellFillings(to io.Writer, d Diagnosis) error {
	all := d.Fillings()
	if len(all) == 0 {
		_, err := fmt.Fprint(to, "There is nothing to fill.\n\n")
		return err
	}
	fmt.Fprintln(to, "Nonces to fill; nothing changes without --dry-run=false:") //nolint:errcheck // the last line tells
	for _, f := range all {
		fmt.Fprintf(to, "  nonce %d: intent %s gives it back, and waits for another nonce; %s, which holds the lane with token %d,\n", f.Nonce, f.Intent, terminal.Plain(d.Holder), d.Token) //nolint:errcheck // as above
		fmt.Fprintf(to, "    signs a call of %s to itself, %d gas at %s per unit, at most %s, and hands it to delivery\n", d.Signer, f.Gas, f.Fee.MaxFee, f.Cost)                            //nolint:errcheck // as above
	}
	_, err := fmt.Fprintln(to)
	return err
}
