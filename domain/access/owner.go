package access

import "strings"

// actorPrefix begins the actor of each event that a request with an API key causes.
const actorPrefix = "api key "

// Actor names a key in the events that its requests cause.
func Actor(id KeyID) string { return actorPrefix + id.String() }

// ActorKey returns the text of the key's id that an actor names; ok is false when the
// actor is not a key.
func ActorKey(actor string) (id string, ok bool) { return strings.CutPrefix(actor, actorPrefix) }

// ClientOf returns the client that submitted a transaction, from the client and the
// actor of the event that says so. Events that were recorded before clients had names
// name the key alone: its id is the client then.
func ClientOf(client, actor string) string {
	if id, ok := ActorKey(actor); ok && client == "" {
		return id
	}
	return client
}

// Opens reports whether a key opens a route that asks for a scope. The scope audit opens
// what read opens, and admin what audit opens beside that.
func (k Key) Opens(s Scope) bool {
	return k.May(s) || s == Read && k.May(Audit) || s == Audit && k.May(Admin)
}

// Audits reports whether a key reads what every client owns, within its senders.
func (k Key) Audits() bool { return k.May(Audit) || k.May(Admin) }
