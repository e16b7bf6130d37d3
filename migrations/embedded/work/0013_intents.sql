-- The work queue of intents, from waiting for a nonce until the end. All of it can be
-- rebuilt from the log, except the claims, which expire.
CREATE TABLE intents (
  intent        BLOB    PRIMARY KEY,
  pos           INTEGER NOT NULL,   -- of its Requested: the queue's order
  chain         INTEGER NOT NULL,
  wants         TEXT    NOT NULL,   -- by whom: signer:0x… or pool:…
  nonce_key     BLOB    NOT NULL,   -- that it has to stand under; empty: any
  in_row        TEXT,               -- client/ordering key; null: in none
  deadline      INTEGER NOT NULL,   -- Unix seconds; 0: never
  head          INTEGER NOT NULL,   -- the first of its row, or in none
  lane          BLOB,               -- signer and nonce key where it has a nonce, or of who has claimed it; null: it may be claimed
  holder        TEXT,               -- of the claim; null: none
  claimed_until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX intents_heads   ON intents (chain, wants, nonce_key, pos) WHERE head = 1 AND lane IS NULL;
CREATE INDEX intents_waiting ON intents (chain, in_row, pos)           WHERE in_row IS NOT NULL AND lane IS NULL;
CREATE INDEX intents_row     ON intents (chain, in_row, pos)           WHERE in_row IS NOT NULL;
CREATE INDEX intents_firsts  ON intents (chain, in_row, pos)           WHERE in_row IS NOT NULL AND head = 1;
CREATE INDEX intents_pinned  ON intents (chain, in_row)                WHERE in_row IS NOT NULL AND lane IS NOT NULL;
CREATE INDEX intents_lanes   ON intents (chain, lane)                  WHERE in_row IS NOT NULL AND lane IS NOT NULL;
CREATE INDEX intents_claims  ON intents (claimed_until)                WHERE holder IS NOT NULL;
