-- Consumers of the log from outside: how far each group has come, which process is
-- given its events, and which streams it could not get past. The log cannot rebuild
-- this: without it, every group begins again.

CREATE SCHEMA feed;

-- A released group keeps its row: the token must go on growing.
CREATE TABLE feed.groups (
  name   text COLLATE "C" PRIMARY KEY,
  pos    bigint      NOT NULL DEFAULT 0,
  holder text        NOT NULL,
  token  bigint      NOT NULL,
  until  timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE feed.parked (
  name     text COLLATE "C" NOT NULL,  -- the group's
  stream   text COLLATE "C" NOT NULL,
  version  bigint      NOT NULL,       -- of the event that could not be handled
  pos      bigint      NOT NULL,       -- likewise
  error    text        NOT NULL,
  attempts integer     NOT NULL,
  since    timestamptz NOT NULL DEFAULT clock_timestamp(),
  wish     text        NOT NULL CHECK (wish IN ('', 'retry', 'skip')),
  PRIMARY KEY (name, stream)
);
