package linear

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Signed is a transaction, and the body of a request that submits it.
type Signed struct {
	Hash chain.Hash
	Body []byte
}

// attemptsEach is about the number of requests per transaction.
const attemptsEach = 12

// keysMost is how many transactions share a few Idempotency-Keys.
const keysMost = 3

// AskSubmits has clients submit the same transactions to replicas concurrently. Some go without
// an Idempotency-Key, and some under one of a few keys that other transactions use too. It ends
// when each client has made its calls, or ctx ends.
func AskSubmits(ctx context.Context, urls []string, all []Signed, clients int, seed uint64) Submits {
	h := NewSubmits()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var asking sync.WaitGroup
	for n := range clients {
		asking.Go(func() {
			draw := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // not for secrets
			for i := 0; i < attemptsEach*len(all)/clients && ctx.Err() == nil; i++ {
				first := i * clients / attemptsEach
				at := min(first+draw.IntN(2), len(all)-1)
				s, ask := all[at], Submit{Hash: all[at].Hash, Body: fmt.Sprintf("%x", all[at].Hash[:4])}
				if draw.IntN(3) > 0 {
					ask.Key = fmt.Sprintf("key-%d-%d", at/keysMost, draw.IntN(2))
				}
				url := urls[draw.IntN(len(urls))]
				h.Do(n, ask, func() (Submitted, bool) {
					out := submit(ctx, client, url, s.Body, ask.Key)
					return out, out.Kind != Lost
				})
			}
		})
	}
	asking.Wait()
	return h
}

// submit posts a submission and returns its answer. An answer that is neither a success nor a
// refusal of the key counts as Lost: the request may have been carried out.
func submit(ctx context.Context, client *http.Client, url string, body []byte, key string) Submitted {
	lost := Submitted{Kind: Lost}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/transactions", bytes.NewReader(body))
	if err != nil {
		return lost
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	req.GetBody = nil // the HTTP client must not retry by itself
	res, err := client.Do(req)
	if err != nil {
		return lost
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return lost
	}
	var told struct {
		Code    string
		Results []struct {
			OK           bool
			AlreadyKnown bool
		}
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		return lost
	}
	switch {
	case told.Code == "idempotency-in-progress":
		return Submitted{Kind: Running}
	case told.Code == "idempotency-conflict":
		return Submitted{Kind: Differs}
	case res.StatusCode != http.StatusOK || len(told.Results) != 1 || !told.Results[0].OK:
		return lost
	case res.Header.Get("Idempotency-Replayed") != "":
		return Submitted{Kind: Replayed, Answer: string(answer)}
	}
	return Submitted{Kind: Carried, Known: told.Results[0].AlreadyKnown, Answer: string(answer)}
}
