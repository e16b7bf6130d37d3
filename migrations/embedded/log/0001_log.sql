-- events.db: the events, and the signed bytes beside them. Nothing else can rebuild this
-- file.

-- Names are long and random, so every commit would write all over an index of names. An
-- index of short digests is six times smaller.
CREATE TABLE streams (
  no     INTEGER PRIMARY KEY,
  digest INTEGER NOT NULL,  -- the first 8 bytes of SHA-256 of the name
  name   TEXT    NOT NULL
) STRICT;
CREATE INDEX streams_digest ON streams (digest);

-- The position is the row number: dense and in commit order, as there is one writer. The
-- newest event is never deleted, so the largest number is the head of the log.
CREATE TABLE events (
  pos         INTEGER PRIMARY KEY,
  stream      INTEGER NOT NULL,  -- streams.no
  version     INTEGER NOT NULL,
  at          INTEGER NOT NULL,  -- microseconds since 1970
  id          BLOB    NOT NULL,
  name        TEXT    NOT NULL,
  data        BLOB    NOT NULL,  -- JSON as received
  correlation BLOB,
  causation   BLOB,
  actor       TEXT    NOT NULL,
  trace       TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_stream ON events (stream, version);

-- Signed bytes, each encrypted with its own data key in keys.db.
CREATE TABLE payloads (
  chain INTEGER NOT NULL,
  hash  BLOB    NOT NULL,
  tag   INTEGER NOT NULL,  -- which of the keys for (chain, hash) opens it
  at    INTEGER NOT NULL,  -- microseconds since 1970
  slot  INTEGER NOT NULL,  -- slots.no
  size  INTEGER NOT NULL,  -- in bytes; the rest of the slot is zeros
  PRIMARY KEY (chain, hash)
) STRICT, WITHOUT ROWID;

-- Erasable content. When SQLite moves rows between pages, as it does after deletions, it
-- leaves copies in unused parts of pages, which secure_delete does not overwrite. So
-- these rows never move: rows are only added at the end, and reused for content of the
-- same length, which overwrites them.
CREATE TABLE slots (
  no    INTEGER PRIMARY KEY,
  free  INTEGER NOT NULL,  -- 1: bytes is all zeros
  bytes BLOB    NOT NULL
) STRICT;
CREATE INDEX slots_free ON slots (length(bytes)) WHERE free = 1;
