// Package rpc talks to the nodes of one chain over JSON-RPC 2.0.
//
// A [Pool] holds the endpoints of one chain. It offers two things:
//
//   - [Pool.Send] sends signed bytes to several endpoints and returns the class and
//     cause of each answer.
//   - [Pool.Reader] reads the chain from one endpoint. It stays with that endpoint while it
//     is healthy and fast, so that consecutive calls are consistent.
//
// Trust in endpoints has these limits:
//
//   - An endpoint is asked nothing until it has shown the configured chain id and the
//     genesis block of the others. It is asked again after every reconnect. An endpoint
//     that shows another chain is ejected, and [Pool.Status] gives the reason.
//   - An answer is used only if it is well formed, of bounded size, carries our id and
//     matches the question. A block with another hash, or a receipt of another transaction or
//     in another block, is an error.
//   - A receipt, and a nonce that makes transactions stale, count when another endpoint
//     says the same of the same block. A block seals verdicts when another endpoint agrees that
//     it is final.
//   - For gas prices ([Market]) several endpoints are asked, and the middle figure counts. A
//     base fee counts only if others give about the same for the block. A transaction's
//     simulated result ([Reader.EstimateGas]) counts when another endpoint gives the same.
//   - After a lost reply it is unknown whether the bytes arrived: the class is unknown,
//     never a refusal. Only messages listed as permanent in messages/ are permanent;
//     everything else is retried.
//
// Clients share the endpoints. A client decides the content and the number of its calls, and so the
// nodes' answers to them. So an answer changes what all calls share only if it answers a read of our
// own, whose content and number no client decides: the endpoint's health, its pause and its learned
// rate, the features it is known to lack, and the endpoint that reads use. The function learn holds
// to this rule. A broadcast proves one thing: if two endpoints call the same bytes by different
// hashes, one of which is the transaction's, the other endpoint lies.
//
// URLs often hold keys. They appear in no name, error, log or metric: an endpoint is shown by
// its configured name, or by its host and port.
package rpc
