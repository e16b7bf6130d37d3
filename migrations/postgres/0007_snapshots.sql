-- Folded states of long streams. Any row may be deleted at any time: the events say the
-- same, and what a row says is checked against them.
CREATE TABLE work.snapshots (
  stream  text COLLATE "C" PRIMARY KEY,
  version bigint  NOT NULL,
  pos     bigint  NOT NULL,
  link    bytea   NOT NULL,  -- of the event at this version
  schema  integer NOT NULL,  -- the shape of data; each aggregate numbers its own
  data    bytea   NOT NULL
);
ALTER TABLE work.snapshots ALTER COLUMN data SET STORAGE EXTERNAL;  -- mostly hashes
