package contractfuzz

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// DurationVar says how long a run sends requests, such as 30m. Without it a run is short.
	DurationVar = "WATCHTOWER_TEST_CONTRACT"
	// SeedVar is the seed of a run; without it a short run has seed 1, and a long one any.
	SeedVar = "WATCHTOWER_TEST_SEED"

	short       = 600 // requests of a short run
	findingsMax = 20  // after which a run ends
)

// Check runs a contract's requests against an API, and reports the findings.
func Check(t *testing.T, c *Contract, target Target) {
	t.Helper()
	seed := uint64(1)
	more := func(n int) bool { return n < short }
	if text := os.Getenv(DurationVar); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", DurationVar, err)
		}
		end := time.Now().Add(long)
		more = func(int) bool { return time.Now().Before(end) }
		seed = rand.Uint64() //nolint:gosec // a seed
	}
	if text := os.Getenv(SeedVar); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", SeedVar, err)
		}
	}
	findings := map[string]int{}
	tally := c.Run(t.Context(), target, seed, func(n int) bool { return more(n) && len(findings) < findingsMax }, func(kind, finding string) {
		if findings[kind]++; findings[kind] == 1 {
			t.Errorf("%s", finding)
		}
	})
	untouched := 0
	for _, o := range c.Operations() {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(tally.Answers)), func(answer string) bool { return strings.HasPrefix(answer, o+" 2") }) {
			untouched++
			t.Logf("%s never succeeded", o)
		}
	}
	t.Logf("seed %d: %d requests, %d kinds of answers, %d of %d operations never succeeded", seed, tally.Requests, len(tally.Answers), untouched, len(c.operations))
	if tally.Requests == 0 {
		t.Error("nothing was sent")
	}
}
