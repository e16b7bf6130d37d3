package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// paper is standard output: plain, or in colour on a terminal.
type paper struct {
	w      io.Writer
	colour bool
}

// newPaper uses colour on a terminal that supports it, unless NO_COLOR is set
// (https://no-color.org).
func newPaper(w io.Writer) *paper {
	p := &paper{w: w}
	if f, ok := w.(*os.File); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		info, err := f.Stat()
		p.colour = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// line prints one line. A write error is ignored: the reader has left.
func (p *paper) line(format string, args ...any) {
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Colours, as SGR parameters (ECMA-48).
const (
	bold  = "1"
	red   = "31"
	green = "32"
)

func (p *paper) in(colour, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p *paper) banner(o options, c *devChain, s *delivery) {
	store := "embedded, in memory: deleted at the end"
	if o.data != "" {
		store = "embedded, in " + o.data
	}
	p.line("%s    %s", p.in(bold, "devnet"), p.in(red, "NOT FOR PRODUCTION: its keys are public"))
	p.line("  API      %s/v1/transactions   health %s/health", s.url, s.url)
	p.line("  Console  %s/console/", s.metricsURL)
	p.line("  Metrics  %s/metrics", s.metricsURL)
	p.line("  Chain    %d at %s", chainID, c.url)
	p.line("           %s", c.about)
	p.line("  Store    %s", store)
	p.line("")
}

// chainAlone tells where a chain without a service is, and how to use it.
func (p *paper) chainAlone(c *devChain) {
	p.line("%s    %s", p.in(bold, "devnet"), p.in(red, "NOT FOR PRODUCTION: its keys are public"))
	p.line("  Chain    %d at %s", chainID, c.url)
	p.line("           %s", c.about)
	p.line("")
	p.line("  Try  go run ./cmd/watchtower serve --chains %d=%s", chainID, c.url)
	p.line("  Ctrl-C stops it.")
}

// hints prints suggestions; example is the hash of a transaction to look at, if any.
func (p *paper) hints(s *delivery, example string) {
	p.line("")
	p.line("  Try  go run ./cmd/watchtower tx list --url %s", s.url)
	if example != "" {
		p.line("       go run ./cmd/watchtower tx events %s --url %s", example, s.url)
	}
	p.line("       curl %s/v1/transactions -H 'content-type: application/json' \\", s.url)
	p.line("         -d '{\"chainId\":%d,\"transactions\":[\"'$(go run ./cmd/devnet --sign)'\"]}'", chainID)
	p.line("       open %s/docs", s.url)
	p.line("  Ctrl-C stops everything.")
}

// step prints one step of a transaction's journey.
func (p *paper) step(hash chain.Hash, label, what string, colour string, after time.Duration) {
	digits := hash.String()
	text := fmt.Sprintf("%-38s", what)
	if colour != "" {
		text = p.in(colour, what) + strings.Repeat(" ", len(text)-len(what))
	}
	p.line("  demo  %s…%s  %-*s  %s %8s", digits[:6], digits[len(digits)-4:], labelWidth, label, text, short(after))
}

// short formats a duration for people: 182 ms, 5.21 s.
func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
