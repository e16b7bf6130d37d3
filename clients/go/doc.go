// Package watchtower is a client of Watchtower, which delivers signed transactions.
//
//	client := &watchtower.Client{URL: "http://127.0.0.1:8420"}
//	results, err := client.Submit(ctx, 42431, raw)
//	…
//	tx, err := client.Wait(ctx, results[0].TxHash, watchtower.Executed)
//
// Every call may be made again: a transaction is known by its hash, so submitting
// it twice takes it on once. The client therefore repeats by itself, with growing
// pauses, what failed for a lost connection or for a service that cannot answer
// now, until the context ends or [Client.Tries] are used up. What the service
// refuses is a [Problem] and is not repeated:
//
//	var problem *watchtower.Problem
//	if errors.As(err, &problem) && problem.Code == "unknown-transaction" { … }
//
// Hashes, addresses and keys are hex with 0x, in lower case as the service answers
// them. Times are Unix seconds.
package watchtower
