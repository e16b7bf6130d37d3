-- The archive: old events move from this file to segment files.

-- events is complete from this position on. Below it, events only has events of unsettled
-- streams.
CREATE TABLE beginning (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  pos INTEGER NOT NULL
) STRICT;
INSERT INTO beginning VALUES (1, 1);

-- Up to this version, a stream's events are only in the archive.
ALTER TABLE streams ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;

-- The segment files: each has all events of positions first <= pos < past.
CREATE TABLE segments (
  first  INTEGER PRIMARY KEY,
  past   INTEGER NOT NULL,
  store  BLOB    NOT NULL,  -- the id of the log's first event
  name   TEXT    NOT NULL,
  hash   BLOB    NOT NULL,  -- what the file's footer says
  events INTEGER NOT NULL,
  bytes  INTEGER NOT NULL,
  since  INTEGER NOT NULL,  -- microseconds since 1970
  until  INTEGER NOT NULL
) STRICT;
