// Package access controls access to the service: API keys, their permissions, and the events that
// grant and revoke them.
package access

// Scope is one permission of a key.
type Scope string

const (
	Submit Scope = "submit" // submit transactions
	Read   Scope = "read"   // read the state of transactions
	Cancel Scope = "cancel" // cancel transactions and groups
	RPC    Scope = "rpc"    // JSON-RPC, which also submits
	Audit  Scope = "audit"  // read every client's data, change nothing
	Admin  Scope = "admin"  // manage keys, log level, profiles, draining
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{Submit, Read, Cancel, RPC, Audit, Admin} }
