package notice

// SnapshotSchema is the version of the format that [Wishes.Snapshot] writes. A change to the
// format, or to the effect of an event in [Wishes.Evolve], needs the next number: snapshots of
// other versions are rebuilt from the events.
const SnapshotSchema = 1

// Snapshot encodes a state. The same state gives the same bytes.
func (w Wishes) Snapshot() []byte { return []byte(w.Off) }

// RestoreWishes decodes the bytes of [Wishes.Snapshot] under [SnapshotSchema]. All bytes are a
// state: event readers do not check reasons either.
func RestoreWishes(data []byte) (Wishes, error) { return Wishes{Off: Reason(data)}, nil }
