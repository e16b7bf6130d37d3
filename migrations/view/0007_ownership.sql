-- The clients that own a transaction, and its sender: one row for each client that submitted it,
-- and one for the sender, unless the transaction only claims it. So lists of keys that are bound to a
-- sender are read along an index without claims. These tables replace transaction_owners and
-- transaction_claims, which an earlier version beside this one goes on to fill.

CREATE TABLE ownership (
  hash     bytea  NOT NULL,
  chain    bigint NOT NULL,
  owner    bytea  NOT NULL,  -- the client's name in bytes, which sort alike everywhere; or the sender
  position bigint NOT NULL,  -- of its Accepted: newest first is by this
  sender   bytea  NOT NULL,
  group_id bytea,            -- that it claims, or is in
  PRIMARY KEY (hash, chain, owner)
);

CREATE TABLE ownership_claims (
  hash     bytea  NOT NULL,
  chain    bigint NOT NULL,
  position bigint NOT NULL,  -- of its Accepted
  PRIMARY KEY (hash, chain)
);

-- The checkpoint first: rows of later events may be among the copied ones, and are written again.
INSERT INTO readers (name, position) SELECT 'ownership', position FROM readers WHERE name = 'owners';
INSERT INTO ownership (hash, chain, owner, position, sender, group_id)
  SELECT hash, chain, owner, position, sender, group_id FROM transaction_owners;
INSERT INTO ownership_claims (hash, chain, position) SELECT hash, chain, position FROM transaction_claims;
INSERT INTO ownership (hash, chain, owner, position, sender, group_id)
  SELECT DISTINCT o.hash, o.chain, o.sender, o.position, o.sender, o.group_id FROM ownership o
  WHERE NOT EXISTS (SELECT 1 FROM ownership_claims c WHERE c.chain = o.chain AND c.hash = o.hash);

CREATE INDEX ownership_position ON ownership (owner, position);
CREATE INDEX ownership_sender ON ownership (owner, sender, position);
CREATE INDEX ownership_group ON ownership (owner, sender, group_id, position) WHERE group_id IS NOT NULL;
