package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// neighbourly is the load of the section neighbours: nine clients pay at a steady rate,
// and a tenth does the same or floods the service.
type neighbourly struct {
	rate        int           // payments a second of the nine clients together
	lasts       time.Duration // of the load, and of the flood
	limit       int           // requests a second that a key may send: rate.key
	times       int           // ratio of the flood's rate to the limit
	connections int           // connections of the flood
}

const (
	goodClients = 9    // clients that only pay
	neighbourP  = 0.99 // judged percentile
	// neighbourMost is the maximum factor by which the flood may raise the nine clients' p99.
	neighbourMost = 2
	// keyBurst is rate.key-burst: the least that api.max-batch allows by default.
	keyBurst = 1000
)

// beside is one run's result: the nine clients' figures beside one kind of tenth client.
type beside struct {
	Half       string     `json:"half"` // watchtower or relayer
	Store      string     `json:"store"`
	Flooded    bool       `json:"flooded"` // whether the tenth client misbehaved
	Payments   int        `json:"payments"`
	Accept     [3]float64 `json:"postedToAcceptedMillis"` // p50, p99 and the maximum, from the due time
	ToMined    [3]float64 `json:"postedToMinedMillis"`
	ToTold     [3]float64 `json:"postedToToldMillis"` // until the API's wait returned executed
	Errors     int        `json:"errors"`
	Lost       int        `json:"lost"`
	Double     int        `json:"double"`
	NeverFinal int        `json:"neverFinal"`
	CPU        float64    `json:"serviceCPUSeconds"` // of service and Postgres
	Others     float64    `json:"processorsForOthers"`
	Idle       float64    `json:"processorsIdle"`
	Flood      *flood     `json:"flood,omitempty"`

	firstErrors []error
}

// wrong returns an error when a well-behaved client's payment failed in any way.
func (r beside) wrong() error {
	if r.Errors+r.Lost+r.Double+r.NeverFinal == 0 {
		return nil
	}
	return fmt.Errorf("%s on %s, %s: %d errors, %d lost, %d double, %d never final: %w",
		r.Half, r.Store, r.tenth(), r.Errors, r.Lost, r.Double, r.NeverFinal, errors.Join(r.firstErrors...))
}

func (r beside) tenth() string {
	if r.Flooded {
		return "misbehaving tenth"
	}
	return "well-behaved tenth"
}

// neighbours runs each half with a well-behaved and with a misbehaving tenth client in turn,
// each on its own store and chain.
func (b *bench) neighbours(ctx context.Context, engine string, _ loads) error {
	for _, h := range []half{{name: "watchtower", program: b.program}, {name: "relayer", program: b.relayer, relay: true}} {
		if !strings.Contains(h.name, b.trial) {
			continue
		}
		for _, flooded := range []bool{false, true} {
			r, err := b.besideOne(ctx, engine, h, flooded)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", h.name, r.tenth(), err)
			}
			b.besides = append(b.besides, r)
			b.tell("%s: %s, %s: posted to mined p99 %.0f ms, accepted p99 %.1f ms, told p99 %.0f ms, %d errors",
				engine, h.name, r.tenth(), r.ToMined[1], r.Accept[1], r.ToTold[1], r.Errors+r.Lost+r.Double+r.NeverFinal)
			b.noteBeside(r)
		}
	}
	return nil
}

// noteBeside records a run's figures; a run with a flood is compared with the last run without.
func (b *bench) noteBeside(r beside) {
	var calm beside
	for _, other := range b.besides {
		if !other.Flooded && other.Half == r.Half && other.Store == r.Store {
			calm = other
		}
	}
	for _, one := range []struct {
		what     string
		of, calm [3]float64
		judged   bool
	}{
		{"posted to accepted", r.Accept, calm.Accept, false},
		{"posted to mined", r.ToMined, calm.ToMined, true},
		{"posted to executed as told", r.ToTold, calm.ToTold, false},
	} {
		f := figure{Section: sectionNeighbours, Store: r.Store, What: fmt.Sprintf("%s, %s, %s, p50", r.Half, r.tenth(), one.what), Unit: "ms"}
		b.sheet.note(f, one.of[0])
		if f.What = strings.TrimSuffix(f.What, "p50") + "p99"; r.Flooded {
			f.Yardstick, f.Against = "well-behaved tenth", one.calm[1]
			if one.judged {
				f.Goal = goal{Within: neighbourMost}
			}
		}
		b.sheet.note(f, one.of[1])
	}
}

// wrongNeighbours returns the failures of the section neighbours: errors of well-behaved
// clients, or medians of p99 that are too far apart.
func (b *bench) wrongNeighbours() (err error) {
	p99 := map[string]map[bool][]float64{}
	for _, r := range b.besides {
		err = errors.Join(err, r.wrong())
		where := r.Half + " on " + r.Store
		if p99[where] == nil {
			p99[where] = map[bool][]float64{}
		}
		p99[where][r.Flooded] = append(p99[where][r.Flooded], r.ToMined[1])
	}
	for _, where := range slices.Sorted(maps.Keys(p99)) {
		calm, flooded := median(p99[where][false]), median(p99[where][true])
		if flooded > neighbourMost*calm {
			err = errors.Join(err, fmt.Errorf("%s: a misbehaving neighbour makes the p99 %.0f ms instead of %.0f ms: more than %d times", where, flooded, calm, neighbourMost))
		}
	}
	return err
}

// printNeighbours prints the results of the floods.
func (b *bench) printNeighbours(w io.Writer) error {
	for _, r := range b.besides {
		line := fmt.Sprintf("%s on %s, %s: %d payments, %d errors, %d lost, %d double, %d never final, max %.0f ms; service %.1f CPU-s; others %.0f %%, idle %.0f %%\n",
			r.Half, r.Store, r.tenth(), r.Payments, r.Errors, r.Lost, r.Double, r.NeverFinal, r.ToMined[2], r.CPU, 100*r.Others, 100*r.Idle)
		if r.Flood != nil {
			line += "  " + r.Flood.String() + "\n"
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

func (f *flood) String() string {
	text := fmt.Sprintf("flood: %d requests due, %d sent, %d items accepted, %.1f CPU-s of its own; answers", f.Due, f.Sent, f.Taken, f.CPU)
	for _, status := range slices.Sorted(maps.Keys(f.Statuses)) {
		text += fmt.Sprintf(" %s: %d", status, f.Statuses[status])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Kinds)) {
		text += fmt.Sprintf("\n    %s:", name)
		for _, status := range slices.Sorted(maps.Keys(f.Kinds[name])) {
			text += fmt.Sprintf(" %s %d", status, f.Kinds[name][status])
		}
	}
	return text
}

// spread returns p50, p99 and the maximum in milliseconds.
func spread(all []time.Duration) [3]float64 {
	return [3]float64{milliseconds(percentile(all, 0.50)), milliseconds(percentile(all, neighbourP)), milliseconds(percentile(all, 1))}
}

// half is one half of the service.
type half struct {
	name, program string
	relay         bool
}

// rates are the flags for the limits of keys.
func (n neighbourly) rates() []string {
	return []string{"--rate-key", strconv.Itoa(n.limit), "--rate-key-burst", strconv.Itoa(keyBurst)}
}
