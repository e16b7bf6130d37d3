package operator

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/projections"
)

const (
	barWidth  = 24
	barEvery  = 100 * time.Millisecond // on a terminal
	lineEvery = 2 * time.Second        // elsewhere
)

// bar shows the progress of a rebuild: on a terminal in one line that is updated, elsewhere in a
// new line every lineEvery.
type bar struct {
	to       io.Writer
	terminal bool
	now      func() time.Time
	began    time.Time
	last     time.Time
	step     string
}

func newBar(to io.Writer, now func() time.Time) *bar {
	return &bar{to: to, terminal: IsTerminal(to), now: now, began: now()}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

func (b *bar) show(p projections.Progress) {
	now, every := b.now(), lineEvery
	if b.terminal {
		every = barEvery
	}
	if p.Step == b.step && now.Sub(b.last) < every {
		return
	}
	b.last, b.step = now, p.Step
	if b.terminal {
		fmt.Fprintf(b.to, "\r\x1b[K%s", b.line(p, now)) //nolint:errcheck // progress only
		return
	}
	fmt.Fprintln(b.to, b.line(p, now)) //nolint:errcheck // progress only
}

// end finishes the line.
func (b *bar) end() {
	if b.terminal && b.step != "" {
		fmt.Fprintln(b.to) //nolint:errcheck // progress only
	}
}

func (b *bar) line(p projections.Progress, now time.Time) string {
	share := 1.0
	if p.Head > 0 {
		share = min(float64(p.Position)/float64(p.Head), 1)
	}
	took := now.Sub(b.began).Seconds()
	text := fmt.Sprintf("%s: %s", p.Model, p.Step)
	if b.terminal {
		full := int(share * barWidth)
		text += " [" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]"
	}
	text += fmt.Sprintf(" %.0f%%, position %s of %s", share*100, thousands(uint64(p.Position)), thousands(uint64(p.Head)))
	if took <= 0 || p.Events == 0 {
		return text
	}
	text += fmt.Sprintf(", %s events/s", thousands(uint64(float64(p.Events)/took)))
	if done := float64(p.Position - p.Began); done > 0 && p.Position < p.Head {
		left := time.Duration(float64(p.Head-p.Position) / done * took * float64(time.Second))
		text += ", " + left.Round(time.Second).String() + " left"
	}
	return text
}

// thousands formats a number with commas.
func thousands(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
