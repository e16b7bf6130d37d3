// Package neartest is a NEAR chain in memory with nodes that speak its JSON-RPC. No NEAR node can be run where
// these tests run, so the rules come from nearcore's sources (commit f0c7706f, protocol version 86), with the
// nodes' own error names. On demand nodes lag, lie, delay and lose replies and forwarded transactions; the
// chain forks, skips heights and congests.
//
// A [Chain] is the consensus: blocks, accounts, receipts. A [Node] is an endpoint with its own faults. What
// nodes receive and what the chain executes is recorded for checks: [Chain.Received], [Chain.Executed].
//
// What it assumes of a real chain, and where that was seen:
//
//   - A nonce above the access key's lands and makes every lower one unusable; a strict one must be the next
//     (runtime/runtime/src/verifier.rs). A nonce of 10^6 times the height or more is dropped without a word.
//   - A new access key starts at (height-1) times 10^6 (runtime/runtime/src/access_keys.rs).
//   - A block is final when two blocks stand on it at consecutive heights (docs/ChainSpec/Consensus.md).
//   - A node forwards transactions to the pools of chunk producers, which are not shared, and keeps nothing:
//     order is not kept, and loss is normal (chain/client/src/rpc_handler.rs). A pool knows no replacement by
//     fee, and keeps two transactions of one nonce (chain/pool/src/lib.rs).
//   - What a producer finds invalid it drops without a word, or includes with a failed outcome that does not
//     use the nonce (chain/chain/src/runtime/mod.rs, runtime/runtime/src/lib.rs).
//   - A transaction makes one receipt, which runs in a later block; receipts may fail although the status is
//     a success (chain/chain/src/chain.rs, get_execution_status).
//   - send_tx with NONE and broadcast_tx_async accept whatever parses; other levels validate at the node's
//     head, forward, and poll for 10 s (chain/jsonrpc/src/lib.rs).
//
// What it leaves out: gas is priced at one price and burnt by simple amounts, contracts do what the test says,
// validators' rewards, and the light client's proofs.
package neartest
