package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	barWidth  = 24
	barEvery  = 100 * time.Millisecond // on a terminal
	lineEvery = 2 * time.Second        // elsewhere
)

// Progress shows how far the work of a command has come: what is done, its rate, and the time that
// remains at this rate. On a terminal it updates one line, elsewhere it prints a line every 2 s, so a
// command that takes less prints none. Work is done in steps, one after the other.
type Progress struct {
	to       io.Writer
	terminal bool
	now      func() time.Time
	unit     string // of what is counted, in the plural

	step  string
	began time.Time // of the step
	first uint64    // what was done when the step began
	last  time.Time // of the last line
	shown bool      // an unfinished line is on the terminal
}

// NewProgress returns a progress that counts units, such as "events". A nil to shows nothing.
func NewProgress(to io.Writer, unit string, now func() time.Time) *Progress {
	return &Progress{to: to, terminal: IsTerminal(to), now: now, unit: unit, last: now()}
}

// Show reports that done of all units of a step are done; all is 0 if it is unknown.
func (p *Progress) Show(step string, done, all uint64) {
	if p.to == nil {
		return
	}
	now, every := p.now(), lineEvery
	if p.terminal {
		every = barEvery
	}
	if p.step != step {
		p.step, p.began, p.first = step, now, done
	}
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	if p.terminal {
		p.shown = true
		fmt.Fprintf(p.to, "\r\x1b[K%s", p.line(done, all, now)) //nolint:errcheck // progress only
		return
	}
	fmt.Fprintln(p.to, p.line(done, all, now)) //nolint:errcheck // progress only
}

// End finishes the line on a terminal.
func (p *Progress) End() {
	if p.shown {
		p.shown = false
		fmt.Fprintln(p.to) //nolint:errcheck // progress only
	}
}

func (p *Progress) line(done, all uint64, now time.Time) string {
	text := p.step + ": "
	if all > 0 {
		share := min(float64(done)/float64(all), 1)
		if p.terminal {
			full := int(share * barWidth)
			text += "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "] "
		}
		text += fmt.Sprintf("%.0f%%, %s of %s %s", share*100, Thousands(done), Thousands(all), p.unit)
	} else {
		text += Thousands(done) + " " + p.unit
	}
	took := now.Sub(p.began).Seconds()
	if took <= 0 || done <= p.first {
		return text
	}
	rate := float64(done-p.first) / took
	text += fmt.Sprintf(", %s/s", Thousands(uint64(rate)))
	if done < all {
		left := time.Duration(float64(all-done) / rate * float64(time.Second))
		text += ", " + left.Round(time.Second).String() + " left"
	}
	return text
}

// Thousands formats a number with commas.
func Thousands(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
