-- work.db: queues, leases and checkpoints. All of it can be rebuilt from the log, so the
-- file may be deleted while no process runs.
--
-- Unsigned 64-bit numbers that are compared are stored with their highest bit flipped,
-- since SQLite's integers are signed: n is stored as n - 2^63. Columns with such numbers
-- are marked as turned over. Times are microseconds since 1970.

CREATE TABLE checkpoints (
  reader   TEXT    PRIMARY KEY,
  position INTEGER NOT NULL
) STRICT;

CREATE TABLE leases (
  name   TEXT    PRIMARY KEY,
  holder TEXT,               -- null: given up
  token  INTEGER NOT NULL,
  until  INTEGER NOT NULL
) STRICT;

CREATE TABLE work (
  no           INTEGER PRIMARY KEY,
  chain        INTEGER NOT NULL,
  hash         BLOB    NOT NULL,
  sender       BLOB    NOT NULL,
  nonce_key    BLOB    NOT NULL,
  nonce        INTEGER NOT NULL,  -- turned over
  eligible_at  INTEGER NOT NULL,  -- Unix seconds, turned over
  expires_at   INTEGER,           -- Unix seconds, turned over; null: never
  phase        TEXT    NOT NULL,
  verdict      TEXT,
  block_number INTEGER,           -- turned over
  block_hash   BLOB,
  next_at      INTEGER NOT NULL,
  attempts     INTEGER NOT NULL,
  note         TEXT    NOT NULL,
  sent_at      INTEGER,
  parked       INTEGER NOT NULL,
  wait_nonce   INTEGER,           -- turned over; null: does not wait
  wait_since   INTEGER,
  seen         INTEGER,           -- when the watcher last looked, in turns
  holder       TEXT,
  lease_until  INTEGER,
  -- When the row may be leased next: a lease that runs hides it.
  due          INTEGER NOT NULL AS (max(next_at, coalesce(lease_until, next_at)))
) STRICT;
CREATE UNIQUE INDEX work_name     ON work (chain, hash);
CREATE INDEX        work_due      ON work (chain, due) WHERE phase = 'open' AND parked = 0;
CREATE INDEX        work_sequence ON work (chain, sender, nonce_key, phase, nonce);
CREATE INDEX        work_unsent   ON work (chain, eligible_at) WHERE phase = 'open' AND attempts = 0;
CREATE INDEX        work_expiring ON work (chain, phase, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX        work_verdicts ON work (chain, phase, block_number) WHERE block_number IS NOT NULL;
CREATE INDEX        work_waiting  ON work (chain, seen) WHERE wait_nonce IS NOT NULL;
CREATE INDEX        work_waiters  ON work (chain, sender, nonce_key, wait_nonce) WHERE wait_nonce IS NOT NULL;

-- The canonical blocks of each chain that the watcher remembers.
CREATE TABLE blocks (
  chain  INTEGER NOT NULL,
  number INTEGER NOT NULL,  -- turned over
  hash   BLOB    NOT NULL,
  parent BLOB    NOT NULL,
  time   INTEGER NOT NULL,  -- turned over
  PRIMARY KEY (chain, number)
) STRICT, WITHOUT ROWID;
