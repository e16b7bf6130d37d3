// Package watchtower is a client of Watchtower, which delivers signed transactions.
//
//	client := &watchtower.Client{URL: "http://127.0.0.1:8420"}
//	results, err := client.Submit(ctx, 42431, raw)
//	…
//	tx, err := client.Wait(ctx, results[0].TxHash, watchtower.Executed)
//
// Every call may be repeated: a transaction is identified by its hash, so submitting it twice
// is accepted once. The client therefore retries lost connections and temporary failures by
// itself, with backoff, until the context ends or [Client.Tries] are used up. A refusal is a
// [Problem] and is not retried:
//
//	var problem *watchtower.Problem
//	if errors.As(err, &problem) && problem.Code == "unknown-transaction" { … }
//
// Hashes, addresses and keys are hex with 0x; the service answers them in lower case. Times are
// Unix seconds.
package watchtower
