-- The read models. They can be dropped, and the projectors rebuild them. The same text
-- serves Postgres and SQLite: times are integers, hashes are bytes.

CREATE TABLE readers (
  name     text   PRIMARY KEY,
  position bigint NOT NULL
);

CREATE TABLE transactions (
  chain     bigint NOT NULL,
  hash      bytea  NOT NULL,
  position  bigint NOT NULL,  -- of its Accepted: newest first is by this
  version   bigint NOT NULL,  -- of the stream, as folded
  sender    bytea  NOT NULL,
  nonce_key bytea  NOT NULL,
  group_id  bytea,            -- null: ungrouped
  status    text   NOT NULL,
  data      bytea  NOT NULL,  -- the whole row as JSON
  PRIMARY KEY (chain, hash)
);

CREATE INDEX transactions_hash ON transactions (hash);
CREATE UNIQUE INDEX transactions_position ON transactions (position);
CREATE INDEX transactions_sender ON transactions (sender, position);
CREATE INDEX transactions_status ON transactions (status, position);
