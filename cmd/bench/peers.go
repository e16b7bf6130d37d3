package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// trial is a run that other programs of this kind were put through on the same kind of
// machine: anvil with a block a second, transfers of 1 wei to an account each, a gas limit
// of 25,000, 32 clients. They sign by themselves; our payments are signed beforehand.
type trial struct {
	name     string
	payments int
	signers  int
	rate     int // payments a second; 0 is as fast as the clients may
	window   int // scheduler.window; 0 is the default

	cut      float64 // of the replies of the node to sends
	replicas int     // beside the first, on the same database
	doubled  bool    // every second request is sent twice at once
	kill     time.Duration
	down     time.Duration // after which it is started again

	peers []peer
}

// peer is what another program showed. A dash is what was not measured, or cannot be.
type peer struct {
	name, accepted, accept, mined, t2m, final, cpu, calls, verdict string
}

const (
	fftm   = "FFTM 1.4.4"
	engine = "thirdweb engine TS"
	op     = "OP txmgr 1.10.0 (library)"
)

// peerClients post at once.
const peerClients = 32

func trials() []trial {
	oneSigner := []peer{
		{fftm, "1619", "17 / 66", "34.6", "13.6 / 28.3", "14.5 / 29.0", "12.8", "2.2", "0 / 0 / 0 / 0"},
		{engine, "125", "108 / 1636", "83.2", "6.3 / 9.7", "8.8 / 10.2", "21.6", "3.6", "0 / 0 / 49 / 0"},
		{op, "–", "–", "104.8", "4.6 / 9.5", "–", "2.7", "8.0", "0 / 0 / 0 / 0"},
	}
	tenSigners := []peer{
		{fftm, "1096", "26 / 74", "26.9", "36.6 / 72.6", "38.6 / 73.3", "14.6", "2.2", "0 / 0 / 0 / 0"},
		{engine, "198", "74 / 1215", "112.6", "7.4 / 14.9", "8.4 / 10.7", "8.6", "2.8", "0 / 0 / 1 / 0"},
		{op, "–", "–", "253.8", "4.5 / 7.4", "–", "2.0", "5.9", "0 / 0 / 0 / 0"},
	}
	return []trial{
		{name: "1 signer, at once", payments: 1000, signers: 1},
		{name: "1 signer, at once, window 1000", payments: 1000, signers: 1, window: 1000, peers: oneSigner},
		{name: "10 signers, at once", payments: 2000, signers: 10},
		{name: "10 signers, at once, window 1000", payments: 2000, signers: 10, window: 1000, peers: tenSigners},
		{name: "10 signers, 20/s", payments: 300, signers: 10, rate: 20, peers: []peer{
			{fftm, "20", "17 / 67", "19.7", "0.58 / 1.12", "1.25 / 1.49", "12.7", "2.3", "0 / 0 / 0 / 0"},
			{engine, "20", "7 / 165", "19.7", "0.57 / 1.19", "2.1 / 2.5", "26.5", "12.5", "0 / 0 / 0 / 0"},
			{op, "–", "–", "19.8", "–", "–", "3.5", "–", "0 / 0 / 0 / 0"},
		}},
		{name: "3 % of replies lost, 20/s", payments: 300, signers: 10, rate: 20, cut: 0.03, peers: []peer{
			{fftm, "–", "–", "2.9", "46 / –", "–", "40", "–", "0 / 0 / 4 of 8 / 0"},
			{engine, "–", "–", "–", "–", "–", "–", "–", "0 / 9 of 9 / 0 / 0"},
			{op, "–", "–", "–", "–", "–", "–", "–", "0 / 0 / 8 told failed / 0"},
		}},
		{name: "kill -9 at 8 s, back 3 s later, 20/s", payments: 500, signers: 10, rate: 20, kill: 8 * time.Second, down: 3 * time.Second, peers: []peer{
			{fftm, "–", "–", "8 after it", "–", "–", "–", "–", "0 / 0 / 1 / –"},
			{engine, "–", "–", "–", "–", "–", "–", "–", "0 / 0 / 0 / – (20 s to come back)"},
		}},
		{name: "2 replicas, 2 signers", payments: 600, signers: 2, replicas: 1, peers: []peer{
			{fftm, "–", "–", "–", "–", "–", "–", "–", "0 / 0 / 73 of 412 / 188 of 600"},
		}},
		{name: "every second request twice at once", payments: 400, signers: 10, doubled: true, peers: []peer{
			{fftm, "130 of 400", "–", "–", "–", "–", "–", "–", "0 / 0 / 0 / 464 of 600"},
			{engine, "400 of 400", "–", "–", "–", "–", "–", "–", "0 / 0 / 0 / 0"},
		}},
	}
}

// fewer are the trials with a tenth of the payments, and a service that is killed soon.
func fewer(all []trial) []trial {
	for i := range all {
		all[i].payments /= 10
		all[i].kill, all[i].down = all[i].kill/8, all[i].down/8
		all[i].cut *= 10
		all[i].peers = nil
	}
	return all
}

// shown is what a trial showed of the service.
type shown struct {
	Run         string        `json:"run"`
	Store       string        `json:"store"`
	Accepted    float64       `json:"acceptedPerSecond"`
	Accept      [2]float64    `json:"acceptMillis"` // half of all, and 99 of 100, took at most
	Mined       float64       `json:"minedPerSecond"`
	ToMined     [2]float64    `json:"postedToMinedSeconds"`
	ToFinal     [2]float64    `json:"postedToFinalSeconds"` // of a sample
	CPU         float64       `json:"cpuMillisPerTransaction"`
	Calls       float64       `json:"nodeCallsPerTransaction"`
	Lost        int           `json:"lost"`       // accepted, and not on the chain
	Double      int           `json:"double"`     // on the chain more than once
	NeverFinal  int           `json:"neverFinal"` // on the chain, and not told so
	Errors      int           `json:"errors"`     // told to clients who did nothing wrong
	Others      float64       `json:"processorsForOthers"`
	Idle        float64       `json:"processorsIdle"`
	Cuts        int           `json:"repliesCut,omitempty"`
	Sends       int           `json:"sends"` // handed to the node
	Back        time.Duration `json:"backNanos,omitempty"`
	Samples     int           `json:"samples"`
	firstErrors []error
}

// wrong says what the trial must not show; empty when all is well.
func (s shown) wrong() error {
	if s.Lost+s.Double+s.NeverFinal+s.Errors == 0 {
		return nil
	}
	return fmt.Errorf("%s on %s: %d lost, %d double, %d never final, %d errors: %w",
		s.Run, s.Store, s.Lost, s.Double, s.NeverFinal, s.Errors, errors.Join(s.firstErrors...))
}

// besidePeers puts the service through what others were put through.
func (b *bench) besidePeers(ctx context.Context, engine string, _ loads) error {
	for _, t := range b.scale.trials {
		if t.replicas > 0 && engine != postgresEngine {
			continue // an embedded store is one process's
		}
		b.tell("%s: %s", engine, t.name)
		s, err := b.try(ctx, engine, t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		b.shown = append(b.shown, s)
		f := figure{Section: sectionPeers, Store: engine, What: t.name + ", mined", Unit: "tx/s"}
		b.sheet.note(f, s.Mined)
	}
	return nil
}

// printPeers prints the trials of ours beside those of others.
func (b *bench) printPeers(w io.Writer) error {
	if len(b.shown) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "run\twho\taccepted/s\taccept ms\tmined/s\tto mined s\tto final s\tCPU ms/tx\tcalls/tx\tlost/double/never final/errors\tothers, idle") //nolint:errcheck // Flush tells
	pair := func(p [2]float64) string { return number(p[0]) + " / " + number(p[1]) }
	for _, t := range b.scale.trials {
		for _, s := range b.shown {
			if s.Run != t.name {
				continue
			}
			fmt.Fprintf(table, "%s\twatchtower, %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d / %d / %d / %d%s\t%.0f %%, %.0f %%\n", //nolint:errcheck // Flush tells
				s.Run, s.Store, number(s.Accepted), pair(s.Accept), number(s.Mined), pair(s.ToMined), pair(s.ToFinal), number(s.CPU), number(s.Calls),
				s.Lost, s.Double, s.NeverFinal, s.Errors, s.remark(), 100*s.Others, 100*s.Idle)
		}
		for _, p := range t.peers {
			fmt.Fprintf(table, "\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", //nolint:errcheck // Flush tells
				p.name, p.accepted, p.accept, p.mined, p.t2m, p.final, p.cpu, p.calls, p.verdict)
		}
	}
	return table.Flush()
}

func (s shown) remark() string {
	switch {
	case s.Cuts > 0:
		return fmt.Sprintf(" (%d cut of %d sends)", s.Cuts, s.Sends)
	case s.Back > 0:
		return fmt.Sprintf(" (%s to come back)", s.Back.Round(10*time.Millisecond))
	}
	return ""
}
