package notice_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// A client alone gets three quarters of the slots. For any number of clients with more to send
// than they get, a client without attempts gets a slot.
func TestSlotsOfClients(t *testing.T) {
	p := notice.DefaultPolicy()
	offers := func(client string) (all []notice.Offer) {
		for n := range byte(80) {
			o := notice.Offer{Endpoint: notice.Endpoint{ID: notice.EndpointID{n}, Client: client}}
			o.Heads = []notice.Notice{{Stage: notice.Queued, NextAt: start}}
			all = append(all, o)
		}
		return all
	}
	busy := map[string]int{}
	for _, crowd := range []struct {
		client string
		want   int
	}{{"a", 48}, {"b", 12}, {"c", 3}, {"", 1}} {
		free := 64
		for _, n := range busy {
			free -= n
		}
		chosen, full := p.Choose(notice.Claim{Limit: free, Slots: 64, Busy: busy}, offers(crowd.client), start)
		if len(chosen) != crowd.want || crowd.client != "" && !slices.Equal(full, []string{crowd.client}) {
			t.Errorf("%q gets %d, and these are full: %v", crowd.client, len(chosen), full)
		}
		busy[crowd.client] = len(chosen)
	}
	// Without API keys all callers are one client.
	if chosen, full := p.Choose(notice.Claim{Limit: 64, Slots: 64}, offers(""), start); len(chosen) != 64 || len(full) != 0 {
		t.Errorf("everybody gets %d, and these are full: %v", len(chosen), full)
	}
	for slots := 1; slots <= 2; slots++ {
		if chosen, _ := p.Choose(notice.Claim{Limit: slots, Slots: slots}, offers("a"), start); len(chosen) != 1 {
			t.Errorf("of %d slots one client gets %d", slots, len(chosen))
		}
	}
}

func TestDueAt(t *testing.T) {
	p := notice.DefaultPolicy()
	head := func(after time.Duration) []notice.Notice { return []notice.Notice{{NextAt: start.Add(after)}} }
	for name, c := range map[string]struct {
		o     notice.Offer
		lapse time.Duration // 0: no lease
		want  time.Duration // -1: never
	}{
		"nothing":                    {want: -1},
		"a notice":                   {o: notice.Offer{Heads: head(time.Hour)}, want: time.Hour},
		"due already":                {o: notice.Offer{Heads: head(-time.Hour)}, want: 0},
		"a lease":                    {o: notice.Offer{Leased: 1}, lapse: time.Minute, want: time.Minute},
		"a lease and a notice":       {o: notice.Offer{Leased: 1, Heads: head(time.Second)}, lapse: time.Minute, want: time.Second},
		"as many leases as can be":   {o: notice.Offer{Leased: 4, Heads: head(time.Second)}, lapse: time.Minute, want: time.Minute},
		"one lease while it fails":   {o: notice.Offer{Endpoint: notice.Endpoint{Failures: 1}, Leased: 1, Heads: head(0)}, lapse: time.Minute, want: time.Minute},
		"paused":                     {o: notice.Offer{Endpoint: notice.Endpoint{PausedUntil: start.Add(time.Hour)}, Heads: head(0)}, want: time.Hour},
		"disabled, and still leased": {o: notice.Offer{Endpoint: notice.Endpoint{Disabled: notice.Operator}, Leased: 1}, lapse: time.Minute, want: -1},
	} {
		var lapse, want time.Time
		if c.lapse != 0 {
			lapse = start.Add(c.lapse)
		}
		if c.want >= 0 {
			want = start.Add(c.want)
		}
		if got := p.DueAt(c.o, lapse, start); !got.Equal(want) {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
}
