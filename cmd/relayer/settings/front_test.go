package settings_test

import (
	"fmt"
	"testing"
)

// Strangers reach intents only if the configuration says so, and then at a limited rate.
func TestStrangers(t *testing.T) {
	for _, c := range []struct {
		args []string
		keys bool
		ok   bool
		rate int
	}{
		{nil, false, true, 0},
		{[]string{"--relay-listen=[::1]:1"}, false, true, 0},
		{[]string{"--relay-listen=:1"}, false, false, 200},
		{[]string{"--relay-listen=192.0.2.1:1"}, false, false, 200},
		{[]string{"--relay-listen=192.0.2.1:1"}, true, true, 200},
		{[]string{"--relay-listen=192.0.2.1:1", "--open-access"}, false, true, 200},
		{[]string{"--relay-listen=192.0.2.1:1", "--rate-address=0"}, true, true, 0},
		{[]string{"--relay-listen=192.0.2.1:1", "--rate-address=7"}, true, true, 7},
		{[]string{"--listen=192.0.2.1:1"}, false, true, 200}, // delivery refuses this
	} {
		t.Run(fmt.Sprint(c.args, c.keys), func(t *testing.T) {
			s, _, err := resolve(t, "", nil, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.CheckAccess(c.keys); (err == nil) != c.ok {
				t.Errorf("let in: %v", err)
			}
			if s.Front.Address.PerSecond != c.rate {
				t.Errorf("%d requests a second, want %d", s.Front.Address.PerSecond, c.rate)
			}
		})
	}
}
