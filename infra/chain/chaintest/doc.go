// Package chaintest is a chain in memory with nodes that speak JSON-RPC. It obeys the rules of
// Tempo's pool and execution. On demand its nodes forget, lie, lag, delay and lose replies, and
// the chain forks, stalls and evicts. Tests, the simulation and the playground use it for
// behaviour that a real node shows too rarely.
//
// A [Chain] is the consensus: blocks, nonces, and one pool shared by all nodes. A [Node] is an
// endpoint of it with its own faults, served over HTTP and WebSocket. Broadcasts received by
// any node, and executed transactions, are recorded for checks: [Chain.Received],
// [Chain.Executed], [Chain.History].
//
// The rules come from the node's sources (tempoxyz/tempo, crates/transaction-pool, crates/revm;
// August 2026), with the node's own texts for refusals:
//
//   - A transaction is executed in a block whose time t satisfies
//     validAfter <= t < validBefore, if its nonce is the next of its sequence
//     (sender and nonce key). A reverted transaction uses its nonce too.
//   - The pool accepts nonce gaps and waits for them to be filled. It accepts validAfter up
//     to 120 s ahead of the clock, and validBefore only more than 3 s after the
//     newest block. It silently drops gapped transactions after 120 s, others after
//     30 minutes, and transactions whose window is about to close.
//   - The expiring key (2^256-1) has no nonce sequence: nonce 0, validBefore at most
//     30 s ahead, and no hash twice. (A real node compares the signed payload and
//     the sender, not the hash.)
package chaintest
