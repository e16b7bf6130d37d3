-- Accounts: an account is the payer that a transaction depends on. While an account is on
-- hold, its due rows are set aside, and released a few at a time.
ALTER TABLE work ADD COLUMN account BLOB NOT NULL DEFAULT x'00000000000000000000000000000000'; -- zeros: nobody's
ALTER TABLE work ADD COLUMN held_since INTEGER; -- null: not set aside

CREATE TABLE holds (
  account BLOB    PRIMARY KEY,
  chain   INTEGER NOT NULL,
  since   INTEGER NOT NULL,
  until   INTEGER NOT NULL,  -- when one row may go again
  grants  INTEGER NOT NULL   -- how many rows may, beyond one
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_due ON holds (chain, until);

-- First attempts and retries have separate indexes, so neither has to wait for the other.
DROP INDEX work_due;
CREATE INDEX work_first ON work (chain, due) WHERE phase = 'open' AND parked = 0 AND held_since IS NULL AND attempts = 0;
CREATE INDEX work_again ON work (chain, due) WHERE phase = 'open' AND parked = 0 AND held_since IS NULL AND attempts > 0;
CREATE INDEX work_held  ON work (account, attempts, due) WHERE held_since IS NOT NULL;
