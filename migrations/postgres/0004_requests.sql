-- Requests that clients may repeat, by the key they gave them. Without this table a
-- request that is repeated is carried out again.
CREATE TABLE work.requests (
  name       bytea       PRIMARY KEY,
  print      bytea       NOT NULL,
  claim      uuid        NOT NULL,
  held_until timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  status     integer,              -- null: not answered yet
  media      text,
  body       bytea
);
CREATE INDEX requests_expiry ON work.requests (expires_at);
