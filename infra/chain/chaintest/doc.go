// Package chaintest is a chain in memory with nodes that speak JSON-RPC. It obeys
// the rules of Tempo's pool and execution, and on demand its nodes forget, lie,
// lag, delay and lose replies, and the chain forks, stalls and evicts. Tests, the
// simulation and the playground use it where a real node would do it too rarely.
//
// A [Chain] is the consensus: blocks, nonces, one pool that all nodes share. A
// [Node] is a door to it, with faults of its own, served over HTTP and WebSocket.
// What came through any door and what was executed is kept for judges:
// [Chain.Received], [Chain.Executed], [Chain.History].
//
// The rules, from the node's sources (tempoxyz/tempo, crates/transaction-pool,
// crates/revm; August 2026), with the node's own words for refusals:
//
//   - A transaction is executed in a block whose time t satisfies
//     validAfter <= t < validBefore, when its nonce is the next of its sequence
//     (sender and nonce key). A reverted one uses its nonce like any other.
//   - The pool takes gaps and waits for them to be filled; it takes validAfter up
//     to 120 s ahead of the clock, and validBefore only more than 3 s after the
//     newest block. It forgets gapped transactions after 120 s, others after
//     30 minutes, and those whose window is about to close, without a word.
//   - The expiring key (2^256-1) counts no nonces: nonce 0, validBefore at most
//     30 s ahead, and no hash twice. (A real node compares the signed payload and
//     the sender, not the hash.)
package chaintest
