package terminal

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// noColor is the name of the flag that turns colours off.
const noColor = "no-color"

// Colours, as SGR parameters (ECMA-48).
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// IsTerminal reports whether w is a terminal that understands control sequences.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Colours reports whether a command's output is coloured: on a terminal, unless --no-color is given or
// NO_COLOR is set and not empty (https://no-color.org).
func Colours(cmd *cobra.Command) bool {
	if flag := cmd.Flags().Lookup(noColor); flag != nil && flag.Value.String() == "true" {
		return false
	}
	return os.Getenv("NO_COLOR") == "" && IsTerminal(cmd.OutOrStdout())
}

// in colours text, if the page has colours.
func (p *page) in(colour, text string) string {
	if !p.colours || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Mark colours the text of a severity, where the output has colours: ok green, warning yellow, critical
// and unknown red.
func Mark(to io.Writer, severity, text string) string { return paper(to).in(colourOf(severity), text) }

// colourOf is the colour of a status, by its first word.
func colourOf(status string) string {
	word, _, _ := strings.Cut(status, " ")
	switch strings.Trim(word, ",:;") {
	case "executed", "completed", "mined", "healthy", "serving", "ok", "OK", "valid", "accepted":
		return green
	case "failed", "expired", "invalid", "stale_by_nonce", "disabled", "refused", "revoked", "critical", "CRITICAL", "unknown", "UNKNOWN":
		return red
	case "retry_scheduled", "waiting", "paused", "draining", "low", "failing", "canceling", "warning", "WARNING":
		return yellow
	}
	return ""
}
