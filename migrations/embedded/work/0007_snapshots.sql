-- Folded states of long streams. Any row may be deleted at any time: the state can be
-- folded from the events, and a row is checked against them.
CREATE TABLE snapshots (
  stream  TEXT    PRIMARY KEY,
  version INTEGER NOT NULL,
  pos     INTEGER NOT NULL,
  link    BLOB    NOT NULL,  -- of the event at this version
  schema  INTEGER NOT NULL,  -- the shape of data; each aggregate numbers its own
  data    BLOB    NOT NULL
) STRICT;
