package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// Payloads is the contract of sealed payloads.
func Payloads(t *testing.T, open func(t *testing.T) Opened[PayloadRows]) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, o Opened[PayloadRows])
	}{
		{"put and get", putGet},
		{"a stored payload stays", putTwice},
		{"racing puts leave a row that fits its key", putRace},
		{"erase", erase},
		{"erased bytes leave the medium", eraseMedium},
		{"erase beside put", eraseBeside},
		{"orphans", orphans},
		{"orphans by age", orphansByAge},
		{"an orphan put again is none", orphanPutAgain},
		{"erasing orphans beside put", orphanRace},
		{"data outlives the process", payloadsReopened},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// sealed makes a row whose bytes can be found on a medium: they repeat its number every few
// bytes. try distinguishes two seals of one payload.
func sealed(id chain.ID, n, try, size int) payload.Sealed {
	mark := func(what string, size int) []byte {
		m := fmt.Sprintf("%s<%d.%06d.%d>", what, id, n, try)
		return []byte(strings.Repeat(m, size/len(m)+1))
	}
	return payload.Sealed{
		Ref: payload.Ref{Chain: id, Hash: hash(n)}, KeyID: uint32(n)<<8 | uint32(try) | 1<<31,
		Wrapped: mark("key", 60), Bytes: mark("bytes", size),
	}
}

func wantPayload(t *testing.T, p PayloadRows, want payload.Sealed) {
	t.Helper()
	got, err := p.Get(soon(t), want.Chain, want.Hash)
	check(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%.1000s", diff)
	}
}

func wantGone(t *testing.T, p PayloadRows, ref payload.Ref) {
	t.Helper()
	if got, err := p.Get(soon(t), ref.Chain, ref.Hash); !errors.Is(err, payload.ErrGone) {
		t.Fatalf("%d %s: %v, %v", ref.Chain, ref.Hash, got, err)
	}
}

func putGet(t *testing.T, o Opened[PayloadRows]) {
	ctx, p := soon(t), o.Port
	wantGone(t, p, payload.Ref{Chain: 1, Hash: hash(1)})
	rows := []payload.Sealed{
		sealed(1, 1, 0, 100), sealed(1, 2, 0, 300), sealed(2, 1, 0, 100), sealed(1<<64-1, 1, 0, 100),
		sealed(1, 3, 0, 4000), sealed(1, 4, 0, 1<<17+300),
	}
	check(t, p.Put(ctx, rows))
	check(t, p.Put(ctx, nil))
	for _, row := range rows {
		wantPayload(t, p, row)
	}
	wantGone(t, p, payload.Ref{Chain: 2, Hash: hash(2)})
	var many []payload.Sealed
	for n := range 1000 {
		many = append(many, sealed(3, n, 0, 200))
	}
	check(t, p.Put(ctx, many))
	wantPayload(t, p, many[0])
	wantPayload(t, p, many[999])
}

func putTwice(t *testing.T, o Opened[PayloadRows]) {
	ctx, p := soon(t), o.Port
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 1, 0, 100)}))
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 1, 1, 200), sealed(1, 2, 1, 100)}))
	wantPayload(t, p, sealed(1, 1, 0, 100))
	wantPayload(t, p, sealed(1, 2, 1, 100))
	// Twice in one call.
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 3, 0, 100), sealed(1, 3, 1, 100)}))
	wantPayload(t, p, sealed(1, 3, 0, 100))
}

// putRace puts the same payloads concurrently, each sealed under its own data key: the stored
// row must come with its own key.
func putRace(t *testing.T, o Opened[PayloadRows]) {
	ctx, p := soon(t), o.Port
	const sides, rows = 16, 20
	var all sync.WaitGroup
	for side := range sides {
		all.Go(func() {
			for n := range rows {
				if err := p.Put(ctx, []payload.Sealed{sealed(1, n, side, 100)}); err != nil {
					t.Error(err)
				}
				got, err := p.Get(ctx, 1, hash(n))
				if err != nil || !cmp.Equal(got, sealed(1, n, int(got.KeyID&0xff), 100)) {
					t.Errorf("row %d: %v, key %x with %.40s", n, err, got.KeyID, got.Bytes)
				}
			}
		})
	}
	all.Wait()
}

func erase(t *testing.T, o Opened[PayloadRows]) {
	ctx, p := soon(t), o.Port
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 1, 0, 100), sealed(1, 2, 0, 100), sealed(2, 1, 0, 100)}))
	check(t, p.Erase(ctx, 1, []chain.Hash{hash(1), hash(7)}))
	wantGone(t, p, payload.Ref{Chain: 1, Hash: hash(1)})
	wantPayload(t, p, sealed(1, 2, 0, 100))
	wantPayload(t, p, sealed(2, 1, 0, 100))
	check(t, p.Erase(ctx, 1, []chain.Hash{hash(1)}))
	check(t, p.Erase(ctx, 1, nil))
	// Put again, it is stored with the new key.
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 1, 3, 100)}))
	wantPayload(t, p, sealed(1, 1, 3, 100))
}

var marks = regexp.MustCompile(`(?:key|bytes)<\d+\.\d{6}\.\d+>`)

// eraseMedium erases half of many rows, in an order unrelated to their place on the medium, and
// searches the medium for their remains.
func eraseMedium(t *testing.T, o Opened[PayloadRows]) {
	if o.Medium == nil {
		t.Log("LEFT OUT: this store's medium cannot be read")
		return
	}
	ctx, p := soon(t), o.Port
	const rows = 1200
	draw := rand.New(rand.NewPCG(7, 7))
	for at := 0; at < rows; at += 100 {
		var batch []payload.Sealed
		for n := at; n < at+100; n++ {
			size := 110 + draw.IntN(300)
			if n%50 == 0 {
				size = 20_000
			}
			batch = append(batch, sealed(1, n, 0, size))
		}
		check(t, p.Put(ctx, batch))
	}
	order := draw.Perm(rows)
	gone := order[:rows/2]
	for batch := range slices.Chunk(gone, 40) {
		var hashes []chain.Hash
		for _, n := range batch {
			hashes = append(hashes, hash(n))
		}
		check(t, p.Erase(ctx, 1, hashes))
	}
	left := map[string]int{}
	for _, m := range marks.FindAll(o.Medium(), -1) {
		left[string(m)]++
	}
	trace := func(n int) (found int) {
		row := sealed(1, n, 0, 100)
		return left[string(marks.Find(row.Wrapped))] + left[string(marks.Find(row.Bytes))]
	}
	for _, n := range order[rows/2:] {
		if trace(n) == 0 {
			t.Fatalf("row %d stands and is not on the medium: this test looks in the wrong place", n)
		}
	}
	traces := 0
	for _, n := range gone {
		wantGone(t, p, payload.Ref{Chain: 1, Hash: hash(n)})
		if trace(n) > 0 {
			traces++
		}
	}
	if traces > 0 {
		t.Errorf("%d of %d erased rows left something on the medium", traces, len(gone))
	}
}

// eraseBeside erases while others put and read. No call fails, and a row is either whole or
// gone.
func eraseBeside(t *testing.T, o Opened[PayloadRows]) {
	ctx, p := soon(t), o.Port
	var all sync.WaitGroup
	for side := range 4 {
		all.Go(func() {
			for try := range 8 {
				for n := range 10 {
					if err := p.Put(ctx, []payload.Sealed{sealed(1, n, side, 100)}); err != nil {
						t.Error("put:", err)
					}
				}
				for n := range 10 {
					got, err := p.Get(ctx, 1, hash(n))
					if err == nil && !cmp.Equal(got, sealed(1, n, int(got.KeyID&0xff), 100)) {
						t.Errorf("key %x with %.40s", got.KeyID, got.Bytes)
					}
					if err != nil && !errors.Is(err, payload.ErrGone) {
						t.Error("get:", err)
					}
				}
				if err := p.Erase(ctx, 1, []chain.Hash{hash(try), hash(try + 1)}); err != nil {
					t.Error("erase:", err)
				}
			}
		})
	}
	all.Wait()
	// A put after an erase is stored, however the race has ended.
	var hashes []chain.Hash
	for n := range 10 {
		hashes = append(hashes, hash(n))
	}
	check(t, p.Erase(ctx, 1, hashes))
	for n := range 10 {
		check(t, p.Put(ctx, []payload.Sealed{sealed(1, n, 9, 100)}))
		wantPayload(t, p, sealed(1, n, 9, 100))
	}
}

// orphans walks all rows page by page, in order of (chain, hash). It erases some of the
// returned rows on the way, including the row at the cursor.
func orphans(t *testing.T, o Opened[PayloadRows]) {
	ctx, p, clock := soon(t), o.Port, o.Clock.orReal()
	var rows []payload.Sealed
	for n := range 60 {
		rows = append(rows, sealed(1, n, 0, 100), sealed(2, n, 0, 100))
	}
	check(t, p.Put(ctx, rows))
	before := clock.Now().Add(time.Hour)
	var seen []payload.Ref
	var after payload.Ref
	for {
		page, err := p.Orphans(ctx, before, after, 7)
		check(t, err)
		if len(page) > 7 {
			t.Fatalf("%d rows on a page of 7", len(page))
		}
		if len(page) == 0 {
			break
		}
		seen = append(seen, page...)
		after = page[len(page)-1]
		check(t, p.Erase(ctx, after.Chain, []chain.Hash{after.Hash}))
		check(t, p.Erase(ctx, page[0].Chain, []chain.Hash{page[0].Hash}))
	}
	if len(seen) != len(rows) || !slices.IsSortedFunc(seen, compareRefs) {
		t.Fatalf("walked over %d rows of %d, sorted: %v", len(seen), len(rows), slices.IsSortedFunc(seen, compareRefs))
	}
	page, err := p.Orphans(ctx, before, payload.Ref{Chain: 2}, 100)
	check(t, err)
	if len(page) == 0 || page[0].Chain != 2 {
		t.Errorf("from chain 2 on: %v", page)
	}
}

func compareRefs(a, b payload.Ref) int {
	if a.Chain != b.Chain {
		return int(a.Chain) - int(b.Chain)
	}
	return bytes.Compare(a.Hash[:], b.Hash[:])
}

func orphansByAge(t *testing.T, o Opened[PayloadRows]) {
	ctx, p, clock := soon(t), o.Port, o.Clock.orReal()
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 1, 0, 100)}))
	clock.Elapse(3 * clockSlack)
	between := clock.Now()
	clock.Elapse(3 * clockSlack)
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 2, 0, 100)}))
	for _, c := range []struct {
		before time.Time
		want   []payload.Ref
	}{
		{between.Add(-time.Hour), nil},
		{between, []payload.Ref{{Chain: 1, Hash: hash(1)}}},
	} {
		got, err := p.Orphans(ctx, c.before, payload.Ref{}, 10)
		check(t, err)
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("kept before %s: %v, want %v", c.before, got, c.want)
		}
	}
}

// orphanPutAgain puts a row again that is about to be erased as an orphan.
func orphanPutAgain(t *testing.T, o Opened[PayloadRows]) {
	ctx, p, clock := soon(t), o.Port, o.Clock.orReal()
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 1, 0, 100), sealed(1, 2, 0, 100)}))
	clock.Elapse(3 * clockSlack)
	between := clock.Now()
	clock.Elapse(3 * clockSlack)
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 1, 1, 100)}))
	if got, err := p.Orphans(ctx, between, payload.Ref{}, 10); err != nil || len(got) != 1 || got[0].Hash != hash(2) {
		t.Errorf("orphans %v, %v", got, err)
	}
	for n := range 4 {
		check(t, p.EraseOrphan(ctx, payload.Ref{Chain: 1, Hash: hash(n)}, between))
	}
	wantPayload(t, p, sealed(1, 1, 0, 100))
	wantGone(t, p, payload.Ref{Chain: 1, Hash: hash(2)})
	check(t, p.Put(ctx, []payload.Sealed{sealed(1, 2, 2, 100)}))
	wantPayload(t, p, sealed(1, 2, 2, 100))
}

// orphanRace erases rows as orphans of an earlier time, while others put them again: a row that
// was put is there.
func orphanRace(t *testing.T, o Opened[PayloadRows]) {
	ctx, p, clock := soon(t), o.Port, o.Clock.orReal()
	for round := range 10 {
		var first []payload.Sealed
		for n := range 20 {
			first = append(first, sealed(1, n, round, 100))
		}
		check(t, p.Put(ctx, first))
		clock.Elapse(3 * clockSlack)
		before := clock.Now()
		clock.Elapse(3 * clockSlack)
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				if err := p.EraseOrphan(ctx, payload.Ref{Chain: 1, Hash: hash(n)}, before); err != nil {
					t.Error("erase:", err)
				}
			})
			all.Go(func() {
				if err := p.Put(ctx, []payload.Sealed{sealed(1, n, 100+round, 100)}); err != nil {
					t.Error("put:", err)
				}
			})
		}
		all.Wait()
		for n := range 20 {
			got, err := p.Get(ctx, 1, hash(n))
			if err != nil || !cmp.Equal(got, sealed(1, n, int(got.KeyID&0xff), 100)) {
				t.Errorf("round %d, row %d: %v, key %x with %.40s", round, n, err, got.KeyID, got.Bytes)
			}
			check(t, p.Erase(ctx, 1, []chain.Hash{hash(n)}))
		}
	}
}

func payloadsReopened(t *testing.T, o Opened[PayloadRows]) {
	ctx := soon(t)
	check(t, o.Port.Put(ctx, []payload.Sealed{sealed(1, 1, 0, 100), sealed(1, 2, 0, 100)}))
	check(t, o.Port.Erase(ctx, 1, []chain.Hash{hash(2)}))
	p := o.Reopen()
	wantPayload(t, p, sealed(1, 1, 0, 100))
	wantGone(t, p, payload.Ref{Chain: 1, Hash: hash(2)})
}
