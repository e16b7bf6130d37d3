-- The work queue of intents: what waits for a nonce, and what has one until it has come
-- out. All of it follows from the log, but for the claims, which lapse.

CREATE TABLE work.intents (
  intent        uuid   PRIMARY KEY,
  pos           bigint NOT NULL,              -- of its Requested: the queue's order
  chain         bigint NOT NULL,
  wants         text   COLLATE "C" NOT NULL,  -- by whom: signer:0x… or pool:…
  nonce_key     bytea  NOT NULL,              -- that it has to stand under; empty: any
  in_row        text   COLLATE "C",           -- client/ordering key; null: in none
  deadline      bigint NOT NULL,              -- Unix seconds; 0: never
  head          boolean NOT NULL,             -- the first of its row, or in none
  lane          bytea,                        -- signer and nonce key where it has a nonce, or of who has claimed it; null: it may be claimed
  holder        text,                         -- of the claim; null: none
  claimed_until timestamptz,
  CHECK ((holder IS NULL) = (claimed_until IS NULL) AND (holder IS NULL OR lane IS NOT NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX intents_heads   ON work.intents (chain, wants, nonce_key, pos) WHERE head AND lane IS NULL;
CREATE INDEX intents_waiting ON work.intents (chain, in_row, pos)           WHERE in_row IS NOT NULL AND lane IS NULL;
CREATE INDEX intents_row     ON work.intents (chain, in_row, pos)           WHERE in_row IS NOT NULL;
CREATE INDEX intents_firsts  ON work.intents (chain, in_row, pos)           WHERE in_row IS NOT NULL AND head;
CREATE INDEX intents_pinned  ON work.intents (chain, in_row)                WHERE in_row IS NOT NULL AND lane IS NOT NULL;
CREATE INDEX intents_lanes   ON work.intents (chain, lane)                  WHERE in_row IS NOT NULL AND lane IS NOT NULL;
CREATE INDEX intents_claims  ON work.intents (claimed_until)                WHERE holder IS NOT NULL;
