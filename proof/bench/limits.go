package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// limits measures the limits of this machine: signature recoveries per second, and durable page
// writes per second.
func (b *bench) limits(ctx context.Context) error {
	sample := sign(1, func(int) (int, wallet.Tempo) { return 0, payment(0, 0) })[0]
	digest := sample.Hash
	key, err := crypto.GenerateKey()
	if err != nil {
		return err
	}
	signature, err := crypto.Sign(digest[:], key)
	if err != nil {
		return err
	}
	recover := func() error {
		_, err := crypto.Ecrecover(digest[:], signature)
		return err
	}
	decode := func() error {
		_, err := tempo.Decode(sample.Raw)
		return err
	}
	all := runtime.GOMAXPROCS(0)
	for range b.scale.runs {
		alone, err := spin(ctx, 1, b.scale.spin, recover)
		if err != nil {
			return err
		}
		b.sheet.note(figure{Section: sectionLimits, What: "ecrecover, one processor", Unit: "1/s"}, alone)
		together, err := spin(ctx, all, b.scale.spin, recover)
		if err != nil {
			return err
		}
		b.sheet.note(figure{
			Section: sectionLimits, What: fmt.Sprintf("ecrecover, all %d", all), Unit: "1/s",
			Yardstick: "one processor", Against: alone,
		}, together)
		decoded, err := spin(ctx, all, b.scale.spin, decode)
		if err != nil {
			return err
		}
		b.sheet.note(figure{
			Section: sectionLimits, What: fmt.Sprintf("decode and recover, all %d", all), Unit: "tx/s",
			Yardstick: "ecrecover", Against: together,
		}, decoded)
		synced, err := syncs(b.dir, b.scale.spin)
		if err != nil {
			return err
		}
		b.sheet.note(figure{Section: sectionLimits, What: "4 KiB appended and synced", Unit: "1/s"}, synced)
	}
	return nil
}

// decodeLimit is the number of transactions per second that could be accepted if only decoding
// took time.
func (b *bench) decodeLimit() (name string, perSecond float64) {
	for _, r := range b.sheet.rows {
		if r.Section == sectionLimits && r.Yardstick == "ecrecover" {
			return "decode limit", median(r.values)
		}
	}
	panic("bench: the limits are measured first")
}

// spin calls a function from some goroutines for a while and returns the calls per second.
func spin(ctx context.Context, goroutines int, d time.Duration, f func() error) (perSecond float64, err error) {
	var count atomic.Int64
	var spinning sync.WaitGroup
	began := time.Now()
	errs := make([]error, goroutines)
	for i := range goroutines {
		spinning.Go(func() {
			for n := int64(0); ; n++ {
				if time.Since(began) >= d || ctx.Err() != nil {
					count.Add(n)
					return
				}
				if errs[i] = f(); errs[i] != nil {
					return
				}
			}
		})
	}
	spinning.Wait()
	return float64(count.Load()) / time.Since(began).Seconds(), errors.Join(append(errs, ctx.Err())...)
}

// syncs appends pages to a file, and flushes each before the next.
func syncs(dir string, d time.Duration) (perSecond float64, err error) {
	f, err := os.Create(filepath.Join(dir, "pages"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4<<10)
	began, n := time.Now(), 0
	for ; time.Since(began) < d; n++ {
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
