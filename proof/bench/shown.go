package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// shown is the result of a trial of the service.
type shown struct {
	Section     string             `json:"section"`
	Run         string             `json:"run"`
	Store       string             `json:"store"`
	Accepted    float64            `json:"acceptedPerSecond"`
	Accept      [2]float64         `json:"acceptMillis"` // median and 99th percentile
	Mined       float64            `json:"minedPerSecond"`
	ToMined     [2]float64         `json:"postedToMinedSeconds"`
	ToFinal     [2]float64         `json:"postedToFinalSeconds"` // of a sample
	CPU         float64            `json:"cpuMillisPerTransaction"`
	Database    float64            `json:"ofItDatabaseMillis"`
	Calls       float64            `json:"nodeCallsPerTransaction"`
	Methods     map[string]float64 `json:"ofTheseByMethod"`
	Lost        int                `json:"lost"`       // accepted, but not on the chain
	Double      int                `json:"double"`     // on the chain more than once
	NeverFinal  int                `json:"neverFinal"` // on the chain, but never reported final
	Errors      int                `json:"errors"`     // errors for well-behaved clients
	Spare       int                `json:"spare"`      // nonces used without paying
	Others      float64            `json:"processorsForOthers"`
	Idle        float64            `json:"processorsIdle"`
	Cuts        int                `json:"repliesCut,omitempty"`
	Sends       int                `json:"sends"`               // sends to the node
	Back        time.Duration      `json:"backNanos,omitempty"` // until the service was back, or another had taken over
	Samples     int                `json:"samples"`
	firstErrors []error
}

// wrong returns the failures of a trial; nil if there are none.
func (s shown) wrong() error {
	if s.Lost+s.Double+s.NeverFinal+s.Errors == 0 {
		return nil
	}
	return fmt.Errorf("%s on %s: %d lost, %d double, %d never final, %d errors: %w",
		s.Run, s.Store, s.Lost, s.Double, s.NeverFinal, s.Errors, errors.Join(s.firstErrors...))
}

// tryAll runs the trials of a section, each with its own counter.
func (b *bench) tryAll(ctx context.Context, section, engine string, at func(trial) counter) error {
	for _, t := range b.scale.trials[section] {
		if t.shared() && engine != postgresEngine || !strings.Contains(t.name, b.trial) {
			continue // only one process can use an embedded store
		}
		b.tell("%s: %s", engine, t.name)
		s, err := b.try(ctx, engine, t, at(t))
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		s.Section = section
		if section == sectionPeers { // with payments signed in advance, no nonce can be filled
			s.Double, s.Spare = s.Double+s.Spare, 0
		}
		b.noteTrial(t, s)
		b.shown = append(b.shown, s)
	}
	return nil
}

// noteTrial records a trial's mining rate, and the other figures with goals.
func (b *bench) noteTrial(t trial, s shown) {
	note := func(what, unit string, v float64, aim goal) {
		b.sheet.note(figure{Section: s.Section, Store: s.Store, What: t.name + what, Unit: unit, Goal: aim}, v)
	}
	mined := figure{Section: s.Section, Store: s.Store, What: t.name + ", mined", Unit: "tx/s", Goal: goal{AtLeast: t.aims.mined}}
	for _, other := range b.shown {
		if other.Section == s.Section && other.Store == s.Store && other.Run == t.aims.against {
			mined.Yardstick, mined.Against, mined.Goal = other.Run, other.Mined, goal{Reach: true}
		}
	}
	b.sheet.note(mined, s.Mined)
	for _, one := range []struct {
		what, unit string
		value, aim float64
	}{
		{", CPU of service and database", "ms/tx", s.CPU, t.aims.cpu},
		{", calls of the node", "calls/tx", s.Calls, t.aims.calls},
		{", posted to mined, p99", "s", s.ToMined[1], t.aims.toMined},
		{", posted to executed as told, p99", "s", s.ToFinal[1], t.aims.toFinal},
		{", until another goes on", "s", s.Back.Seconds(), t.aims.back},
	} {
		if one.aim > 0 {
			note(one.what, one.unit, one.value, goal{AtMost: one.aim})
		}
	}
	if t.aims.cpu > 0 && s.Database > 0 {
		note(", of it the database's CPU", "ms/tx", s.Database, goal{})
	}
	if t.aims.calls > 0 {
		for _, method := range slices.Sorted(maps.Keys(s.Methods)) {
			note(", of these "+method, "calls/tx", s.Methods[method], goal{})
		}
	}
}

// printTrials prints our trials beside others' results.
func (b *bench) printTrials(w io.Writer) error {
	if len(b.shown) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "run\tservice\taccepted/s\taccept ms\tmined/s\tto mined s\tto final s\tCPU ms/tx\tcalls/tx\tlost/double/never final/errors\tothers, idle") //nolint:errcheck // Flush tells
	for _, section := range sections() {
		for _, t := range b.scale.trials[section] {
			b.printTrial(table, section, t)
		}
	}
	return table.Flush()
}

func (b *bench) printTrial(table io.Writer, section string, t trial) {
	who := map[string]string{sectionPeers: "watchtower", sectionRelay: "relayer"}[section]
	pair := func(p [2]float64) string { return number(p[0]) + " / " + number(p[1]) }
	made := false
	for _, s := range b.shown {
		if s.Run != t.name || s.Section != section {
			continue
		}
		made = true
		fmt.Fprintf(table, "%s\t%s, %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d / %d / %d / %d%s\t%.0f %%, %.0f %%\n", //nolint:errcheck // Flush tells
			s.Run, who, s.Store, number(s.Accepted), pair(s.Accept), number(s.Mined), pair(s.ToMined), pair(s.ToFinal), number(s.CPU), number(s.Calls),
			s.Lost, s.Double, s.NeverFinal, s.Errors, s.remark(t), 100*s.Others, 100*s.Idle)
	}
	for _, p := range t.peers {
		if made {
			fmt.Fprintf(table, "\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", //nolint:errcheck // Flush tells
				p.name, p.accepted, p.accept, p.mined, p.t2m, p.final, p.cpu, p.calls, p.verdict)
		}
	}
}

func (s shown) remark(t trial) (text string) {
	switch {
	case s.Cuts > 0:
		text = fmt.Sprintf(" (%d cut of %d sends)", s.Cuts, s.Sends)
	case t.takeover:
		text = fmt.Sprintf(" (%s until another went on)", s.Back.Round(10*time.Millisecond))
	case s.Back > 0:
		text = fmt.Sprintf(" (%s to come back)", s.Back.Round(10*time.Millisecond))
	}
	if s.Spare > 0 {
		text += fmt.Sprintf(" (%d nonces filled)", s.Spare)
	}
	return text
}
