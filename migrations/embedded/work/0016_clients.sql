-- Clients: each takes turns in the queue, and has a limit for its waiting rows. Rows from
-- before belong to the client without a name.
--
-- claimed: an access key signed, and it is not confirmed yet that the key may sign for
-- the sender. Such a row is not part of the sequence that its bytes name. All claimed
-- rows of a client share one sequence in sender and nonce_key, and named_sender and
-- named_key have the values in the bytes.
ALTER TABLE work ADD COLUMN client       TEXT    NOT NULL DEFAULT '';
ALTER TABLE work ADD COLUMN bytes        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE work ADD COLUMN claimed      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE work ADD COLUMN named_sender BLOB;  -- null: sender and nonce_key are as the bytes name them
ALTER TABLE work ADD COLUMN named_key    BLOB;
CREATE INDEX work_named ON work (chain, named_sender, named_key, nonce) WHERE named_sender IS NOT NULL;

-- Finds the clients with due rows one after the other, however many rows each has.
DROP INDEX work_first;
DROP INDEX work_again;
CREATE INDEX work_first ON work (chain, client, due) WHERE phase = 'open' AND parked = 0 AND held_since IS NULL AND attempts = 0;
CREATE INDEX work_again ON work (chain, client, due) WHERE phase = 'open' AND parked = 0 AND held_since IS NULL AND attempts > 0;
ALTER TABLE holds ADD COLUMN client TEXT NOT NULL DEFAULT ''; -- whose turn a probe takes
DROP INDEX holds_due;
CREATE INDEX holds_due ON holds (chain, client, until);

-- Rows that wait for a nonce, about which the chain is asked. Claimed rows are retried
-- without that.
DROP INDEX work_waiting;
CREATE INDEX work_waiting ON work (chain, seen) WHERE wait_nonce IS NOT NULL AND named_sender IS NULL;

-- Per client: the number of its open and watched rows, and the bytes of its open rows.
CREATE TABLE work_clients (
  client  TEXT    PRIMARY KEY,
  waiting INTEGER NOT NULL,
  bytes   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO work_clients SELECT '', count(*), 0 FROM work WHERE phase IN ('open', 'watched') HAVING count(*) > 0;
