package rlptest

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// Limits on decoding one transaction.
const (
	mostOften  = slower * time.Millisecond      // for 999 of 1,000
	mostEver   = slower * 10 * time.Millisecond // for every one
	freeBytes  = 32 << 10                       // of memory, for any input
	perByte    = 10                             // of memory beyond that, per byte of input
	largeEvery = 50                             // one mutation in this many has a large seed
)

// Decoder is a decoder under test by [Try].
type Decoder struct {
	// Seeds are valid transactions of usual size; Large are valid transactions of many
	// kilobytes.
	Seeds, Large [][]byte
	Decode       func(raw []byte) error
	// Check checks the decoder's other guarantees: an accepted transaction encodes to the same
	// bytes again.
	Check func(t *testing.T, raw []byte)
}

// Try decodes random mutations of valid transactions, the same ones each time: 25,000, or a
// million with the build tag chaos. None may panic, exceed the limits on time or memory, or
// decode to wrong fields. It checks one in ten, and of the million every accepted one.
func Try(t *testing.T, d Decoder) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same ones each time
	times, taken := make([]time.Duration, 0, mutations), 0
	var most cost
	for i := range mutations {
		seeds := d.Seeds
		if i%largeEvery == 0 {
			seeds = d.Large
		}
		raw := Mutate(r, seeds[r.IntN(len(seeds))])
		c := d.measure(raw)
		times = append(times, c.took)
		most.took, most.bytes, most.factor = max(most.took, c.took), max(most.bytes, c.bytes), max(most.factor, c.factor)
		if c.took > mostEver || c.factor > perByte {
			t.Errorf("%d bytes took %s and %d bytes of memory", len(raw), c.took, c.bytes)
		}
		if c.err == nil {
			taken++
		}
		if thorough && c.err == nil || i%10 == 0 {
			d.Check(t, raw)
		}
		if t.Failed() {
			t.Fatalf("by mutation %d: %x", i, raw)
		}
	}
	slices.Sort(times)
	at := func(share float64) time.Duration { return times[int(share*float64(len(times)-1))] }
	t.Logf("%d mutations, %d taken; decoded within: median %s, p99 %s, p99.9 %s, longest %s; memory: at most %d bytes, and beyond %d bytes %.1f times the input",
		mutations, taken, at(0.5), at(0.99), at(0.999), most.took, most.bytes, freeBytes, most.factor)
	if late := at(0.999); late > mostOften {
		t.Errorf("one in 1,000 took %s and more", late)
	}
	if taken < mutations/100 || taken > mutations/2 {
		t.Errorf("%d of %d were taken: the mutations try too little", taken, mutations)
	}
}

// cost is the cost of one decoding.
type cost struct {
	took   time.Duration
	bytes  uint64  // allocated
	factor float64 // bytes above freeBytes, per byte of the input
	err    error
}

// measure decodes and returns the cost. A decoding over a limit may have been delayed, or be
// charged with others' allocations. So it is repeated, and the lowest values count.
func (d Decoder) measure(raw []byte) (least cost) {
	for try := range 8 {
		began := time.Now()
		err := d.Decode(raw)
		c := cost{took: time.Since(began), err: err}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = d.Decode(raw)
		runtime.ReadMemStats(&after)
		c.bytes = after.TotalAlloc - before.TotalAlloc
		if c.bytes > freeBytes {
			c.factor = float64(c.bytes-freeBytes) / float64(max(len(raw), 1))
		}
		if try == 0 || c.took < least.took {
			least.took = c.took
		}
		if try == 0 || c.bytes < least.bytes {
			least.bytes, least.factor = c.bytes, c.factor
		}
		if least.err = err; least.took <= mostOften/2 && least.factor == 0 {
			break
		}
	}
	return least
}
