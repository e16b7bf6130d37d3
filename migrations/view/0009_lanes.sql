-- Lanes of the relay's signers. Empty if no relay runs.

CREATE TABLE lanes (
  chain     bigint NOT NULL,
  signer    bytea  NOT NULL,
  nonce_key bytea  NOT NULL,
  position  bigint NOT NULL,  -- of its first event: newest first is by this
  version   bigint NOT NULL,  -- of the stream, as folded
  holder    text   NOT NULL,  -- the process that opened it last
  busy      bigint NOT NULL,  -- 1: a nonce is in flight
  data      bytea  NOT NULL,  -- the whole row as JSON
  PRIMARY KEY (chain, signer, nonce_key)
);

CREATE UNIQUE INDEX lanes_position ON lanes (position);
CREATE INDEX lanes_chain ON lanes (chain, position);
CREATE INDEX lanes_signer ON lanes (signer, position);
CREATE INDEX lanes_holder ON lanes (holder, position);
CREATE INDEX lanes_busy ON lanes (busy, position);
