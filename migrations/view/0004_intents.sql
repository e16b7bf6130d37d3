-- Intents requested by the relay's clients. Empty if no relay runs.

CREATE TABLE intents (
  intent   bytea  NOT NULL PRIMARY KEY,
  position bigint NOT NULL,  -- of its Requested: newest first is by this
  version  bigint NOT NULL,  -- of the stream, as folded
  chain    bigint NOT NULL,
  client   text   NOT NULL,
  wants    text   NOT NULL,  -- who is to sign: signer:0x… or pool:…
  wish     text   NOT NULL,  -- the idempotency key
  signer   bytea,            -- who signs, once that is known
  subject  text   NOT NULL,
  status   text   NOT NULL,
  data     bytea  NOT NULL   -- the whole row as JSON
);

CREATE UNIQUE INDEX intents_position ON intents (position);
CREATE UNIQUE INDEX intents_wish ON intents (client, wants, wish);
CREATE INDEX intents_client ON intents (client, position);
CREATE INDEX intents_signer ON intents (signer, position);
CREATE INDEX intents_status ON intents (status, position);

-- The signed attempts of intents.
CREATE TABLE intent_attempts (
  hash    bytea  NOT NULL,
  intent  bytea  NOT NULL,
  attempt bigint NOT NULL,  -- which of the intent's it is, from 1 on
  PRIMARY KEY (hash, intent)
);
