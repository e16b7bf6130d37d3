// Package watchtower is a client of both services of Watchtower: [Client] delivers signed
// transactions, and [Relay] has intents signed and delivered.
//
//	relay := &watchtower.Relay{URL: "http://127.0.0.1:8422"}
//	intent, err := relay.Create(ctx, watchtower.IntentRequest{ChainID: watchtower.EVM(42431), Key: "payout:17", Pool: "hot", To: to})
//	…
//	done, err := relay.Wait(ctx, intent.ID, watchtower.Completed)
//
// Every call may be repeated: a transaction is identified by its hash, an intent by its key. The
// client therefore retries lost connections and temporary failures by itself, with backoff, until
// the context ends or the tries are used up. A refusal is a [Problem] and is not retried:
//
//	var problem *watchtower.Problem
//	if errors.As(err, &problem) && problem.Code == "unknown-intent" { … }
//
// [OutcomeUnknown] reports whether a failed request may have been carried out all the same.
//
// Hashes, addresses and keys are hex with 0x; the service answers them in lower case. Times are
// Unix seconds.
package watchtower
