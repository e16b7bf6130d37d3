-- feed.db: external consumers of the log. For each group it has its position, the process
-- that gets its events, and the streams with an event that could not be handled. The log
-- cannot rebuild this file: without it every group starts again from the beginning.

-- A released group keeps its row, because its token must keep growing.
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
