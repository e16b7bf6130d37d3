-- Clients: each has its turn in the queue and a limit of what it may have waiting. What
-- was there before belongs to the client without a name.
--
-- Claimed: an access key signed, and nothing shows yet that it may sign for the sender.
-- Such a row has no place in the sequence that its bytes name: its sequence is one that
-- all claimed rows of its client share, and named is the one it names.
ALTER TABLE work.queue
  ADD COLUMN client  text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN bytes   integer          NOT NULL DEFAULT 0,
  ADD COLUMN claimed boolean          NOT NULL DEFAULT false,
  ADD COLUMN named   uuid;  -- null: sequence is the one that the bytes name
CREATE INDEX queue_named ON work.queue (named, nonce) WHERE named IS NOT NULL;

-- The clients with due rows are found one after the other, however many rows each has.
DROP INDEX work.queue_first;
DROP INDEX work.queue_again;
CREATE INDEX queue_first ON work.queue (chain, client, next_at)
  WHERE phase = 'open' AND NOT parked AND held_since IS NULL AND holder IS NULL AND attempts = 0;
CREATE INDEX queue_again ON work.queue (chain, client, next_at)
  WHERE phase = 'open' AND NOT parked AND held_since IS NULL AND holder IS NULL AND attempts > 0;
ALTER TABLE work.holds ADD COLUMN client text COLLATE "C" NOT NULL DEFAULT ''; -- whose turn a probe takes
DROP INDEX work.holds_due;
CREATE INDEX holds_due ON work.holds (chain, client, until);

-- What each client has in the queue that is open or watched, and the bytes of what is open.
CREATE TABLE work.queue_clients (
  client  text COLLATE "C" PRIMARY KEY,
  waiting bigint NOT NULL,
  bytes   bigint NOT NULL
);
INSERT INTO work.queue_clients SELECT '', count(*), 0 FROM work.queue WHERE phase IN ('open', 'watched') HAVING count(*) > 0;

CREATE OR REPLACE VIEW work.readable AS
SELECT chain, '0x' || encode(hash, 'hex') AS hash, '0x' || encode(sender, 'hex') AS sender,
       '0x' || encode(nonce_key, 'hex') AS nonce_key, nonce + 9223372036854775808 AS nonce,
       eligible_at + 9223372036854775808 AS eligible_at, expires_at + 9223372036854775808 AS expires_at,
       phase, parked, verdict, block_number + 9223372036854775808 AS block_number,
       '0x' || encode(block_hash, 'hex') AS block_hash, next_at, attempts, note, sent_at,
       wait_nonce + 9223372036854775808 AS wait_nonce, wait_since, holder, leased_until, account, held_since,
       client, bytes, claimed
FROM work.queue;
