-- Work: what the log can rebuild, and rights that lapse by themselves.

CREATE SCHEMA work;

-- Numbers that may use all 64 bits (nonces, the chain's times, block numbers) are
-- kept with the top bit flipped, so that the signed bigint sorts as the unsigned
-- number does: n - 2^63. The view work.readable turns them back. A chain's id is
-- kept as it is: it is compared only for being equal.
CREATE TABLE work.queue (
  chain        bigint      NOT NULL,
  hash         bytea       NOT NULL,
  sequence     uuid        NOT NULL,  -- digest of chain, sender and nonce key: one short column to look up
  sender       bytea       NOT NULL,
  nonce_key    bytea       NOT NULL,
  nonce        bigint      NOT NULL,  -- flipped
  eligible_at  bigint      NOT NULL,  -- flipped
  expires_at   bigint      NOT NULL,  -- flipped; 0 is never
  phase        text COLLATE "C" NOT NULL CHECK (phase IN ('open', 'announced', 'watched', 'sealed')),
  parked       boolean     NOT NULL,
  verdict      text        NOT NULL,
  block_number bigint      NOT NULL,  -- flipped
  block_hash   bytea       NOT NULL,
  next_at      timestamptz NOT NULL,
  attempts     integer     NOT NULL,
  note         text        NOT NULL,
  sent_at      timestamptz,           -- null: never
  wait_nonce   bigint,                -- flipped; null: not waiting
  wait_since   timestamptz,
  holder       text,                  -- null: not leased
  leased_until timestamptz,
  PRIMARY KEY (chain, hash),
  CHECK (phase = 'open' OR NOT parked AND holder IS NULL)
) WITH (fillfactor = 80,
        -- A queue's indexes slow down with the dead entries at their front.
        autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX queue_free     ON work.queue (chain, next_at)       WHERE phase = 'open' AND NOT parked AND holder IS NULL;
CREATE INDEX queue_leased   ON work.queue (chain, leased_until)  WHERE holder IS NOT NULL;
CREATE INDEX queue_sequence ON work.queue (sequence, phase, parked, nonce);
CREATE INDEX queue_waiting  ON work.queue (sequence, wait_nonce) WHERE phase = 'open' AND wait_nonce IS NOT NULL;
CREATE INDEX queue_fresh    ON work.queue (chain, eligible_at)   WHERE phase = 'open' AND attempts = 0;
CREATE INDEX queue_expiring ON work.queue (chain, expires_at)
  WHERE phase IN ('open', 'watched') AND expires_at > (-9223372036854775808)::bigint;
CREATE INDEX queue_verdicts ON work.queue (chain, phase, block_number) WHERE phase IN ('announced', 'sealed');

-- The queue for people.
CREATE VIEW work.readable AS
SELECT chain, '0x' || encode(hash, 'hex') AS hash, '0x' || encode(sender, 'hex') AS sender,
       '0x' || encode(nonce_key, 'hex') AS nonce_key, nonce + 9223372036854775808 AS nonce,
       eligible_at + 9223372036854775808 AS eligible_at, expires_at + 9223372036854775808 AS expires_at,
       phase, parked, verdict, block_number + 9223372036854775808 AS block_number,
       '0x' || encode(block_hash, 'hex') AS block_hash, next_at, attempts, note, sent_at,
       wait_nonce + 9223372036854775808 AS wait_nonce, wait_since, holder, leased_until
FROM work.queue;

-- Sequences that had a row waiting for a nonce, and when the watcher last asked the
-- chain about each. One in which nothing waits any more goes when it comes up.
CREATE TABLE work.waiting (
  sequence  uuid        PRIMARY KEY,
  chain     bigint      NOT NULL,
  sender    bytea       NOT NULL,
  nonce_key bytea       NOT NULL,
  seen      timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE INDEX waiting_seen ON work.waiting (chain, seen);

-- The canonical blocks that the watcher remembers.
CREATE TABLE work.blocks (
  chain  bigint NOT NULL,
  number bigint NOT NULL,  -- flipped
  hash   bytea  NOT NULL,
  parent bytea  NOT NULL,
  time   bigint NOT NULL,  -- flipped
  PRIMARY KEY (chain, number)
);

-- A released lease keeps its row: the token must go on growing.
CREATE TABLE work.leases (
  name   text PRIMARY KEY,
  holder text        NOT NULL,
  token  bigint      NOT NULL,
  until  timestamptz NOT NULL
);

CREATE TABLE work.checkpoints (
  reader text PRIMARY KEY,
  pos    bigint NOT NULL
) WITH (fillfactor = 50);
