package broadcaster

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// However many accounts of a client are on hold, they are probed at a bounded rate, each in its
// turn. A few accounts, and other clients' accounts, are probed as soon as is due.
func TestProbesArePaced(t *testing.T) {
	const most, clientsAccounts = 5 * time.Second, 1000
	var p probes
	now := time.Unix(1_800_000_000, 0)
	next := map[string]time.Time{}
	for i := range clientsAccounts {
		next[fmt.Sprint("mallory ", i)] = now
	}
	for i := range 20 {
		next[fmt.Sprint("alice ", i)] = now
	}
	made := map[string][]time.Time{}
	for end := now.Add(10 * time.Minute); now.Before(end); now = now.Add(100 * time.Millisecond) {
		for account, due := range next {
			if due.After(now) {
				continue
			}
			made[account] = append(made[account], now)
			client, pause := account[:5], most
			next[account] = p.at(prober{client: client}, now, now.Add(pause))
		}
	}
	var all []time.Time
	for account, times := range made {
		if account[:5] == "alice" {
			if want := int(10 * time.Minute / most); len(times) != want {
				t.Errorf("%s is probed %d times, want %d", account, len(times), want)
			}
			continue
		}
		all = append(all, times[1:]...) // the first attempt is no probe
		if n := len(times); n < 3 || n > 5 {
			t.Errorf("%s is probed %d times", account, n)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	for i, at := range all[:max(len(all)-10*probesPerSecond, 0)] {
		if within := all[i+10*probesPerSecond].Sub(at); within < 4*time.Second {
			t.Fatalf("%d probes within %s, of which those of one pause may come at once", 10*probesPerSecond, within)
		}
	}
	if bound := 600 * probesPerSecond; len(all) > bound || len(all) < bound*9/10 {
		t.Errorf("%d probes in ten minutes, at most %d are allowed", len(all), bound)
	}
}

// Clients within their bound are forgotten.
func TestProbesForgetClients(t *testing.T) {
	var p probes
	now := time.Unix(1_800_000_000, 0)
	for i := range 3 * probesClientsMax {
		now = now.Add(time.Second)
		if at := p.at(prober{client: fmt.Sprint(i)}, now, now.Add(time.Second)); at != now.Add(time.Second) {
			t.Fatalf("client %d waits until %s", i, at)
		}
	}
	if n := len(p.due); n > probesClientsMax {
		t.Errorf("%d clients are remembered", n)
	}
}
