-- Groups of transactions. Unsigned numbers are stored with their highest bit flipped, so
-- that the databases' signed integers have the same order.

CREATE TABLE groups (
  chain     bigint NOT NULL,
  sender    bytea  NOT NULL,
  group_id  bytea  NOT NULL,
  nonce_key bytea  NOT NULL,
  position  bigint NOT NULL,  -- of the first Joined among the members: newest first is by this
  end_at    bigint NOT NULL,  -- the members' largest eligible_at
  PRIMARY KEY (sender, group_id, chain)
);

CREATE INDEX groups_sender ON groups (sender, position);

CREATE TABLE group_members (
  hash        bytea  NOT NULL PRIMARY KEY,  -- which the chain's id is under
  chain       bigint NOT NULL,
  sender      bytea  NOT NULL,
  group_id    bytea  NOT NULL,
  nonce_key   bytea  NOT NULL,
  nonce       bigint NOT NULL,
  eligible_at bigint NOT NULL,
  position    bigint NOT NULL   -- of its Joined
);

CREATE INDEX group_members_position ON group_members (sender, group_id, chain, position);
CREATE INDEX group_members_eligible ON group_members (sender, group_id, chain, eligible_at);
CREATE INDEX group_members_nonce ON group_members (sender, group_id, chain, nonce, position);

-- Transactions that an access key signed and the chain has not confirmed yet.
CREATE TABLE group_claims (
  hash       bytea  NOT NULL PRIMARY KEY,
  chain      bigint NOT NULL,
  sender     bytea  NOT NULL,
  access_key bytea  NOT NULL,
  position   bigint NOT NULL   -- of its Accepted
);

CREATE INDEX group_claims_position ON group_claims (chain, position);
