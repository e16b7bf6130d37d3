package delivery

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The bytes of a transaction, and of the answer, are charged after they are read.
func TestLargeAnswersAreCharged(t *testing.T) {
	const burst = 100
	s := newStack(t, func(c *Config) { c.Rates.Address = rest.Rate{PerSecond: 1, Burst: burst} })
	raw := signed(t, newKey(t), testChain, 0, func(tx *types.DynamicFeeTx) { tx.Gas, tx.Data = 10_000_000, make([]byte, 100<<10) })
	target := "/v1/transactions/" + s.submit(raw)[0].TxHash.String()
	s.elapse(time.Hour)
	res := s.get(target)
	units := (len(res.body) + bodyUnit - 1) / bodyUnit
	if got, want := res.header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-units, units); res.status != http.StatusOK || units < 13 || got != want {
		t.Errorf("answered %d with %d bytes and RateLimit %s, want %s", res.status, len(res.body), got, want)
	}
	unchanged, err := s.send(http.MethodGet, target, nil, "If-None-Match", res.header.Get("ETag"))
	if got, want := unchanged.header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-units-1, units+1); err != nil || unchanged.status != http.StatusNotModified || got != want {
		t.Errorf("unchanged, it answered %d with RateLimit %s, want %s, %v", unchanged.status, got, want, err)
	}
}

// The bytes of a transaction are charged also if they cannot be decoded.
func TestUndecodedBytesAreCharged(t *testing.T) {
	const burst, units = 100, 7 // 100 KiB
	var broken atomic.Bool
	s := newStack(t, func(c *Config) {
		c.Rates.Address = rest.Rate{PerSecond: 1, Burst: burst}
		decode := c.Submit.Decoders[testChain]
		c.Submit.Decoders[testChain] = func(raw []byte) (chain.Signed, error) {
			if broken.Load() {
				return chain.Signed{}, context.DeadlineExceeded
			}
			return decode(raw)
		}
	})
	raw := signed(t, newKey(t), testChain, 0, func(tx *types.DynamicFeeTx) { tx.Gas, tx.Data = 10_000_000, make([]byte, 100<<10) })
	target := "/v1/transactions/" + s.submit(raw)[0].TxHash.String()
	s.elapse(time.Hour)
	broken.Store(true)
	res := s.get(target)
	if got, want := res.header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-units, units); res.status != http.StatusOK || len(res.body) > bodyUnit || got != want {
		t.Errorf("answered %d with %d bytes and RateLimit %s, want %s", res.status, len(res.body), got, want)
	}
}

// Reads of transactions take no slot of submissions, and one client's reads leave a place to
// other clients.
func TestDecodesTakePlaces(t *testing.T) {
	resttest.TakeTurns(t, newDecodes, rest.HolderOf, decodePlaces, decodeShare, 0)
	s := newStack(t)
	hash := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	for range cap(s.config.Submit.Slots) {
		s.config.Submit.Slots <- struct{}{}
	}
	read := make(chan response, 1)
	go func() {
		if res, err := s.send(http.MethodGet, "/v1/transactions/"+hash.String(), nil); err == nil {
			read <- res
		}
		close(read)
	}()
	if res := <-read; !strings.Contains(string(res.body), `"gas":50000`) {
		t.Errorf("a read waits for submissions, and answers %v", res)
	}
	for range cap(s.config.Submit.Slots) {
		<-s.config.Submit.Slots
	}
}

// Reads of the next free nonce of one client leave a place to other clients.
func TestNextNoncesTakePlaces(t *testing.T) {
	resttest.TakeTurns(t, newNonces, rest.HolderOf, noncePlaces, nonceShare, nonceQueue)
}
