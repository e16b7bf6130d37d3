-- Accounts: on whose means a transaction depends. While one is on hold its due rows
-- are set aside, and let go few at a time.
ALTER TABLE work.queue
  ADD COLUMN account    uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000', -- zeros: nobody's
  ADD COLUMN held_since timestamptz,                                                  -- null: not set aside
  ADD CHECK (phase = 'open' OR held_since IS NULL);

CREATE TABLE work.holds (
  account uuid        PRIMARY KEY,
  chain   bigint      NOT NULL,
  since   timestamptz NOT NULL,
  until   timestamptz NOT NULL,  -- when one row may go again
  grants  integer     NOT NULL   -- how many rows may, beyond one
);
CREATE INDEX holds_due ON work.holds (chain, until);

-- First attempts and repeats apart, for neither may keep the other waiting.
DROP INDEX work.queue_free;
CREATE INDEX queue_first ON work.queue (chain, next_at)
  WHERE phase = 'open' AND NOT parked AND held_since IS NULL AND holder IS NULL AND attempts = 0;
CREATE INDEX queue_again ON work.queue (chain, next_at)
  WHERE phase = 'open' AND NOT parked AND held_since IS NULL AND holder IS NULL AND attempts > 0;
CREATE INDEX queue_held  ON work.queue (account, attempts, next_at) WHERE held_since IS NOT NULL;

CREATE OR REPLACE VIEW work.readable AS
SELECT chain, '0x' || encode(hash, 'hex') AS hash, '0x' || encode(sender, 'hex') AS sender,
       '0x' || encode(nonce_key, 'hex') AS nonce_key, nonce + 9223372036854775808 AS nonce,
       eligible_at + 9223372036854775808 AS eligible_at, expires_at + 9223372036854775808 AS expires_at,
       phase, parked, verdict, block_number + 9223372036854775808 AS block_number,
       '0x' || encode(block_hash, 'hex') AS block_hash, next_at, attempts, note, sent_at,
       wait_nonce + 9223372036854775808 AS wait_nonce, wait_since, holder, leased_until, account, held_since
FROM work.queue;
