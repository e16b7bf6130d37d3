package rig

import (
	"os"
	"testing"
	"time"
)

// TimedVar is the variable by which a test judges time. Unless it is set, the machine is
// taken to run other tests, and a time that is too long is only logged.
const TimedVar = "WATCHTOWER_TEST_TIMED"

// Within reports that an event took a time, which a promise limits to most. It fails the
// test only where time is judged ([TimedVar]): on a machine that the test has for itself.
func Within(t testing.TB, took, most time.Duration, event string) {
	t.Helper()
	switch {
	case took <= most:
		t.Logf("%s after %v", event, took)
	case os.Getenv(TimedVar) != "":
		t.Errorf("%s after %v, and %v is allowed", event, took, most)
	default:
		t.Logf("%s after %v, and %v is allowed; %s is not set, so this is no failure", event, took, most, TimedVar)
	}
}
