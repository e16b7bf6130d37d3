// Package promise decides whether the service kept its word. It is handed facts: the
// events of the log, what reached nodes, what clients asked and were told, and what
// the chain holds; and it says which promise was broken, by which stream, at which
// position, and by what evidence. It does no IO and reads no clock, so the same
// checkers judge a simulation, tests of processes, and a copy of a production log.
//
// A [Judge] is fed one fact after the other, in the order in which they happened, and
// names the first bad one at once. What only a whole history can show is decided when
// it ends, by [Judge.Finish]. The life of each transaction is followed here by rules of
// its own, not by those of package tx: what is judged does not judge itself. Of a
// transaction that has ended about 300 bytes are kept, and of each event its id, so that
// a history of a million transactions is judged in half a gigabyte.
//
// Where each promise is decided:
//
//	P1, P2, P3       Judge: by the calls of clients and the log; P2 also by [Queued]
//	P4 … P7          package lanes: by the log of whoever hands out nonces and signs, of whose
//	                 attempts it decides P8 and P17 too
//	P8, P9           Judge: by what reached nodes; the hash is computed anew
//	P10 … P14        Judge: by the log, and by the [Chain] where one is given
//	P15, P16, P17    Judge: by what reached nodes
//	P18, P19         [Compare]: rows against folds, a rebuild against the live table
//	P20              [Reader]: what one reader was shown of the log
//	P21, P26         [Differ]: the outcomes of two runs
//	P22              package intents, which decides P3, P10 and P23 for intents too: by the log,
//	                 by the chain, and by what receivers of notices got
//	P23, P24         Judge: by the log, what reached nodes, and the calls of clients
//	P25              Judge: versions, positions, event ids, attempts
//	P27              Judge: who is turned away is told when to come back; that memory is
//	                 bounded is cmd/watchtower.TestLittleMemory and TestFewDescriptors
//	P28              [Canaries]: in whatever the service wrote
//	P29              Judge, where decoding is given: bytes decode to what was recorded; the
//	                 corpus is infra/chain/tempo.TestVectors and infra/chain/ethereum.TestVectors
//	P30              Judge: every event is decoded; the frozen samples are domain/tx.TestFrozenSamples,
//	                 domain/group.TestFrozenSamples, domain/access.TestFrozenSamples, domain/lane.TestFrozenSamples
//	                 and domain/intent.TestFrozenSamples
//	P31              Judge: links are made anew
//	P32, P33, P34    package safeguards: by the log of whoever says what may be signed; it
//	                 decides P23 for what is signed for intents
//	P36              [Undisturbed]: one client's life in two runs, with hostile clients and
//	                 without; [Secrets]: what clients are shown
package promise
