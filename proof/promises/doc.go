// Package promises checks that the service keeps its promises. Its input are facts: the events of
// the log, the bytes that reached nodes, the clients' requests and answers, and the contents of
// the chain. It reports each broken promise with its stream, position and evidence. It does no IO
// and reads no clock, so the same checks apply to simulations, tests of processes, and copies of
// production logs.
//
// A [Judge] gets the facts in the order in which they happened, and reports a violation at once.
// Checks that need the whole history are made by [Judge.Finish]. The judge follows each
// transaction by rules of its own, independent of package tx, so that the judged code does not
// judge itself. It keeps about 300 bytes per ended transaction and the id of each event: a
// history of a million transactions needs half a gigabyte.
//
// Where each promise is decided:
//
//	P1, P2, P3       Judge: by the calls of clients and the log; P2 also by [Queued]
//	P4 … P7          package lanes: by the log of lanes; it also decides P8 and P17 for
//	                 attempts of lanes
//	P8, P9           Judge: by the bytes that reached nodes; the hash is computed again
//	P10 … P14        Judge: by the log, and by the [Chain] where one is given
//	P15, P16, P17    Judge: by the bytes that reached nodes
//	P18, P19         [Compare]: rows against folds, a rebuild against the live table
//	P20              [Reader]: by the events that one reader was shown
//	P21, P26         [Differ]: the outcomes of two runs
//	P22              package intents, which decides P3, P10 and P23 for intents too: by the log,
//	                 by the chain, and by the notices that receivers got
//	P23, P24         Judge: by the log, the bytes that reached nodes, and the calls of clients
//	P25              Judge: versions, positions, event ids, attempts
//	P27              Judge: an overload refusal says when to come back; that memory is
//	                 bounded is cmd/watchtower.TestLittleMemory and TestFewDescriptors
//	P28              [Canaries]: in all output of the service
//	P29              Judge, if Decode is set: bytes decode to the recorded fields; the
//	                 corpus is infra/chain/tempo.TestVectors and infra/chain/ethereum.TestVectors
//	P30              Judge: every event is decoded; the frozen samples are domain/delivery/tx.TestFrozenSamples,
//	                 domain/delivery/group.TestFrozenSamples, domain/access.TestFrozenSamples, domain/relay/lane.TestFrozenSamples
//	                 and domain/relay/intent.TestFrozenSamples
//	P31              Judge: links are computed again
//	P32, P33, P34    package safeguards: by the log of safeguards, budgets and signers; it
//	                 decides P23 for signed attempts of intents
//	P36              [Undisturbed]: one client's life in two runs, with hostile clients and
//	                 without; [Secrets]: the data shown to clients
package promises
