// Package rpc talks to the nodes of one chain over JSON-RPC 2.0.
//
// A [Pool] holds the endpoints of one chain. It offers two things:
//
//   - [Pool.Send] hands signed bytes to several endpoints and says, in classes
//     and causes, what each of them answered.
//   - [Pool.Reader] reads the chain from one endpoint, the same one as long as it
//     is healthy and quick, so that calls made one after the other tell one story.
//
// What is trusted, and how far:
//
//   - An endpoint is asked nothing before it has shown the configured chain id
//     and the genesis block the others show; it is asked again after every
//     reconnect. One that shows others is ejected and says so in [Pool.Status].
//   - An answer is used only if it is well formed, of bounded size, carries our
//     id and speaks of what was asked: a block under another hash, a receipt of
//     another transaction or in another block is an error, never a fact.
//   - A receipt, and a nonce that makes transactions stale, count when another endpoint
//     says the same of the same block; a block seals verdicts when another says too that
//     it is final.
//   - What gas costs ([Market]) is asked of several, and the figure in the middle counts;
//     a base fee only if others say about the same of the block. How a transaction would
//     end ([Reader.EstimateGas]) counts when another endpoint says the same.
//   - After a lost reply nobody knows whether the bytes arrived: the class is
//     unknown, never a refusal. Only messages listed as permanent in messages/
//     are permanent; everything else is retried.
//
// URLs often hold keys. They appear in no name, error, log or metric: an endpoint
// is known by the name it was given, or by its host and port.
package rpc
