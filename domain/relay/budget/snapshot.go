package budget

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// SnapshotSchema is the version of the format that [State.Snapshot] writes. A change to the
// format, or to the effect of an event in [State.Evolve], needs the next number: snapshots of
// other versions are rebuilt from the events.
const SnapshotSchema = 1

// frozen is a state's JSON form, with every list in a fixed order.
type frozen struct {
	Day    Day           `json:"day"`
	Limits []frozenLimit `json:"limits,omitempty"`
	Used   []frozenSum   `json:"used,omitempty"`
	Open   []frozenLane  `json:"open,omitempty"`
}

type frozenLimit struct {
	Account Account `json:"account"`
	Limit   Limit   `json:"limit"`
}

type frozenSum struct {
	Account Account `json:"account"`
	Sum
}

type frozenLane struct {
	Lane  Lane                `json:"lane"`
	Token uint64              `json:"token"`
	Open  []frozenReservation `json:"open"`
}

type frozenReservation struct {
	Purpose
	Client  string `json:"client,omitempty"`
	Subject string `json:"subject,omitempty"`
	Cap     Sum    `json:"cap"`
	Since   int64  `json:"since"` // milliseconds since 1970
	Counted Sum    `json:"counted"`
	Day     Day    `json:"day"`
}

func (a Account) compare(b Account) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Client, b.Client), cmp.Compare(a.Subject, b.Subject), bytes.Compare(a.Signer[:], b.Signer[:]))
}

func (l Lane) compare(b Lane) int {
	return cmp.Or(bytes.Compare(l.Signer[:], b.Signer[:]), bytes.Compare(l.NonceKey[:], b.NonceKey[:]))
}

// Snapshot encodes a state. The same state gives the same bytes.
func (s State) Snapshot() []byte {
	f := frozen{Day: s.Day}
	for a, l := range s.Limits {
		f.Limits = append(f.Limits, frozenLimit{a, l})
	}
	for a, sum := range s.used.all() {
		f.Used = append(f.Used, frozenSum{a, sum})
	}
	for l, on := range s.lanes {
		lane := frozenLane{Lane: l, Token: on.token}
		for _, r := range on.open {
			lane.Open = append(lane.Open, frozenReservation{r.Purpose, r.Client, r.Subject, r.Cap, r.Since.UnixMilli(), r.counted, r.day})
		}
		f.Open = append(f.Open, lane)
	}
	slices.SortFunc(f.Limits, func(a, b frozenLimit) int { return a.Account.compare(b.Account) })
	slices.SortFunc(f.Used, func(a, b frozenSum) int { return a.Account.compare(b.Account) })
	slices.SortFunc(f.Open, func(a, b frozenLane) int { return a.Lane.compare(b.Lane) })
	data, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("budget: a state cannot be encoded: %v", err))
	}
	return data
}

// Restore decodes the bytes of [State.Snapshot] under [SnapshotSchema].
func Restore(data []byte) (State, error) {
	var f frozen
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return State{}, fmt.Errorf("budget snapshot: %w", err)
	}
	s := State{Day: f.Day, Limits: map[Account]Limit{}, lanes: map[Lane]shelf{}}
	for _, l := range f.Limits {
		s.Limits[l.Account] = l.Limit
	}
	used := s.used.edit()
	for _, u := range f.Used {
		used.set(u.Account, u.Sum)
	}
	s.used = used.sums
	for _, l := range f.Open {
		on := shelf{token: l.Token}
		for _, r := range l.Open {
			on.open = append(on.open, &Reservation{r.Purpose, r.Client, r.Subject, r.Cap, time.UnixMilli(r.Since).UTC(), r.Counted, r.Day})
		}
		if len(on.open) == 0 || !slices.IsSortedFunc(on.open, func(a, b *Reservation) int { return a.compare(b.Purpose) }) {
			return State{}, errors.New("budget snapshot has a lane that is empty or out of order")
		}
		s.lanes[l.Lane] = on
	}
	if !bytes.Equal(s.Snapshot(), data) {
		return State{}, errors.New("budget snapshot is not in its canonical encoding")
	}
	return s, nil
}
