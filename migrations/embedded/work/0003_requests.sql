-- Requests with an idempotency key, by that key. Without this table a repeated request is
-- executed again.
CREATE TABLE requests (
  name       BLOB    PRIMARY KEY,
  print      BLOB    NOT NULL,
  claim      BLOB    NOT NULL,
  held_until INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  status     INTEGER,              -- null: not answered yet
  media      TEXT,
  body       BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_expiry ON requests (expires_at);
