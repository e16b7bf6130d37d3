-- Further owners: clients that submitted the bytes of a row after its first client. The row is
-- due in the turn of each owner, at the owner's own time and under its own hold. A row without
-- further owners has no rows here, and costs nothing more.
ALTER TABLE work ADD COLUMN shared INTEGER; -- null: written before owners were stored, not known

CREATE TABLE work_owners (
  no          INTEGER PRIMARY KEY,
  chain       INTEGER NOT NULL,
  hash        BLOB    NOT NULL,
  client      TEXT    NOT NULL,
  account     BLOB    NOT NULL,
  next_at     INTEGER NOT NULL,
  held_since  INTEGER,           -- null: not set aside
  -- Copies of the row's state. The triggers keep them up to date.
  free        INTEGER NOT NULL,  -- open and not parked
  attempts    INTEGER NOT NULL,
  lease_until INTEGER,
  due         INTEGER NOT NULL AS (max(next_at, coalesce(lease_until, next_at)))
) STRICT;
CREATE UNIQUE INDEX work_owners_name ON work_owners (chain, hash, client);
CREATE INDEX work_owners_first ON work_owners (chain, client, due) WHERE free = 1 AND held_since IS NULL AND attempts = 0;
CREATE INDEX work_owners_again ON work_owners (chain, client, due) WHERE free = 1 AND held_since IS NULL AND attempts > 0;
CREATE INDEX work_owners_held  ON work_owners (account, attempts, due) WHERE held_since IS NOT NULL;

-- An owner's due time is its own, except when the queue makes the row due earlier: a nonce was
-- used, a window opened, a block left the chain.
CREATE TRIGGER work_shared AFTER UPDATE ON work WHEN new.shared = 1 BEGIN
  UPDATE work_owners SET
    free = (new.phase = 'open' AND new.parked = 0), attempts = new.attempts, lease_until = new.lease_until,
    held_since = CASE WHEN new.phase = 'open' THEN held_since END,
    next_at = CASE WHEN new.phase = 'open' AND old.phase <> 'open' THEN new.next_at
                   WHEN new.next_at < old.next_at THEN min(next_at, new.next_at) ELSE next_at END
  WHERE chain = new.chain AND hash = new.hash;
END;
CREATE TRIGGER work_unshared AFTER DELETE ON work WHEN old.shared = 1 BEGIN
  DELETE FROM work_owners WHERE chain = old.chain AND hash = old.hash;
END;

CREATE INDEX work_unknown ON work (chain, hash) WHERE shared IS NULL AND phase = 'open';
