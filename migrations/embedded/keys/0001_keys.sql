-- keys.db: the data keys of payloads, wrapped by the master key. It is a separate file,
-- so that a backup of events.db cannot decrypt payloads that were erased after the
-- backup.

CREATE TABLE keys (
  chain  INTEGER NOT NULL,
  hash   BLOB    NOT NULL,
  tag    INTEGER NOT NULL,  -- from SHA-256 of the wrapped key; the payload row names it
  master INTEGER NOT NULL,  -- which master key wrapped it
  slot   INTEGER NOT NULL,  -- slots.no, where the wrapped key lies
  size   INTEGER NOT NULL,  -- in bytes; the rest of the slot is zeros
  PRIMARY KEY (chain, hash, tag)
) STRICT, WITHOUT ROWID;

-- As in events.db: erasable content is in rows that never move.
CREATE TABLE slots (
  no    INTEGER PRIMARY KEY,
  free  INTEGER NOT NULL,  -- 1: bytes is all zeros
  bytes BLOB    NOT NULL
) STRICT;
CREATE INDEX slots_free ON slots (length(bytes)) WHERE free = 1;
