// Package api has the contracts of delivery's API, openapi.yaml, and of the operators' API, operators.yaml. The folders below it are the APIs:
//
//   - rest has what all of them share: server, keys, rates, problems, streams. It knows no routes of
//     the others.
//   - delivery has delivery's routes, and relay has the relay's.
//   - jsonrpc answers the calls of wallets, which come in through a route of delivery. rpcroute has what
//     the two say to each other.
//   - webguard keeps pages of other sites out of every listener.
//
// All may import rest, and rest imports webguard alone. delivery, relay and jsonrpc do not import each
// other.
package api

import _ "embed"

// delivery is the contract as written.
//
//go:embed openapi.yaml
var delivery string

// operators is the contract of the operators' API of both programs, as written.
//
//go:embed operators.yaml
var operators string

// Operators returns the contract of the operators' API, in YAML. It describes the routes of both
// programs: see [github.com/tempo-watchtower/watchtower/api/rest.Admin].
func Operators() []byte { return []byte(operators) }

// Delivery returns the contract of delivery's API, in YAML.
func Delivery() []byte { return []byte(delivery) }
