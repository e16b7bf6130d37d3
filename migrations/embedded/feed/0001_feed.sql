-- feed.db: consumers of the log from outside. How far each group has come, which
-- process is given its events, and which streams it could not get past. The log cannot
-- rebuild this: without it, every group begins again.

-- A released group keeps its row: the token must go on growing.
CREATE TABLE groups (
  name   TEXT    PRIMARY KEY,
  pos    INTEGER NOT NULL DEFAULT 0,
  holder TEXT,              -- null: released
  token  INTEGER NOT NULL,
  until  INTEGER NOT NULL   -- microseconds since 1970
) STRICT, WITHOUT ROWID;

CREATE TABLE parked (
  name     TEXT    NOT NULL,  -- the group's
  stream   TEXT    NOT NULL,
  version  INTEGER NOT NULL,  -- of the event that could not be handled
  pos      INTEGER NOT NULL,  -- likewise
  error    TEXT    NOT NULL,
  attempts INTEGER NOT NULL,
  since    INTEGER NOT NULL,
  wish     TEXT    NOT NULL CHECK (wish IN ('', 'retry', 'skip')),
  PRIMARY KEY (name, stream)
) STRICT, WITHOUT ROWID;
