-- Requests that clients may repeat, by the key they gave them. Without this table a
-- request that is repeated is carried out again.
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
