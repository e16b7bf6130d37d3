-- The clients that own a transaction: one row for each client that submitted it.

CREATE TABLE transaction_owners (
  hash     bytea  NOT NULL,
  chain    bigint NOT NULL,
  owner    bytea  NOT NULL,  -- the client's name, in bytes: they sort alike everywhere
  position bigint NOT NULL,  -- of its Accepted: newest first is by this
  sender   bytea  NOT NULL,
  group_id bytea,            -- that it claims, or is in
  PRIMARY KEY (hash, chain, owner)
);

CREATE INDEX transaction_owners_position ON transaction_owners (owner, position);
CREATE INDEX transaction_owners_sender ON transaction_owners (owner, sender, position);
CREATE INDEX transaction_owners_group ON transaction_owners (owner, sender, group_id, position) WHERE group_id IS NOT NULL;

-- Transactions with an unconfirmed sender: an access key signed, and the chain has not
-- confirmed that it may. They do not belong to keys that are bound to the sender.
CREATE TABLE transaction_claims (
  hash     bytea  NOT NULL,
  chain    bigint NOT NULL,
  position bigint NOT NULL,  -- of its Accepted
  PRIMARY KEY (hash, chain)
);
