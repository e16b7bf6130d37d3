// Package access is who may use the service: API keys, what each may do, and the
// events that grant and revoke them.
package access

// Scope is one thing that a key may be good for.
type Scope string

const (
	Submit Scope = "submit" // hand transactions in
	Read   Scope = "read"   // ask what became of them
	Cancel Scope = "cancel" // take transactions and groups back
	RPC    Scope = "rpc"    // JSON-RPC, which also submits
	Audit  Scope = "audit"  // read what every client owns, and change nothing
	Admin  Scope = "admin"  // keys, the log's level, profiles, draining
)

// Scopes lists them all.
func Scopes() []Scope { return []Scope{Submit, Read, Cancel, RPC, Audit, Admin} }
