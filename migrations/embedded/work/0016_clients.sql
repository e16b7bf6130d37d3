-- Clients: each has its turn in the queue and a limit of what it may have waiting. What
-- was there before belongs to the client without a name.
--
-- Claimed: an access key signed, and nothing shows yet that it may sign for the sender.
-- Such a row has no place in the sequence that its bytes name: sender and nonce_key are of
-- a sequence that all claimed rows of its client share, and the columns beside them hold
-- what the bytes name.
ALTER TABLE work ADD COLUMN client       TEXT    NOT NULL DEFAULT '';
ALTER TABLE work ADD COLUMN bytes        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE work ADD COLUMN claimed      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE work ADD COLUMN named_sender BLOB;  -- null: sender and nonce_key are as the bytes name them
ALTER TABLE work ADD COLUMN named_key    BLOB;
CREATE INDEX work_named ON work (chain, named_sender, named_key, nonce) WHERE named_sender IS NOT NULL;

-- The clients with due rows are found one after the other, however many rows each has.
DROP INDEX work_first;
DROP INDEX work_again;
CREATE INDEX work_first ON work (chain, client, due) WHERE phase = 'open' AND parked = 0 AND held_since IS NULL AND attempts = 0;
CREATE INDEX work_again ON work (chain, client, due) WHERE phase = 'open' AND parked = 0 AND held_since IS NULL AND attempts > 0;
ALTER TABLE holds ADD COLUMN client TEXT NOT NULL DEFAULT ''; -- whose turn a probe takes
DROP INDEX holds_due;
CREATE INDEX holds_due ON holds (chain, client, until);

-- What waits for a nonce, and the chain is asked about. A claimed row comes back by itself.
DROP INDEX work_waiting;
CREATE INDEX work_waiting ON work (chain, seen) WHERE wait_nonce IS NOT NULL AND named_sender IS NULL;

-- What each client has in the queue that is open or watched, and the bytes of what is open.
CREATE TABLE work_clients (
  client  TEXT    PRIMARY KEY,
  waiting INTEGER NOT NULL,
  bytes   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO work_clients SELECT '', count(*), 0 FROM work WHERE phase IN ('open', 'watched') HAVING count(*) > 0;
