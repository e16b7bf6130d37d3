package access

import "strings"

// actorPrefix is the actor prefix in events caused by a request with an API key.
const actorPrefix = "api key "

// Actor returns a key's actor name in events.
func Actor(id KeyID) string { return actorPrefix + id.String() }

// ActorKey returns the id of the key in an actor name; ok is false if the actor is not a key.
func ActorKey(actor string) (id string, ok bool) { return strings.CutPrefix(actor, actorPrefix) }

// ClientOf returns the client that submitted a transaction, from the client and actor of its
// event. Events recorded before clients had names contain only the key, whose id is then the
// client.
func ClientOf(client, actor string) string {
	if id, ok := ActorKey(actor); ok && client == "" {
		return id
	}
	return client
}

// Opens reports whether a key may use a route that needs a scope. Audit also opens the routes of
// read. Admin also opens the routes of audit, but not the routes of read.
func (k Key) Opens(s Scope) bool {
	return k.May(s) || s == Read && k.May(Audit) || s == Audit && k.May(Admin)
}

// Audits reports whether a key reads every client's data, within its senders.
func (k Key) Audits() bool { return k.May(Audit) || k.May(Admin) }
