-- A further owner's turn counts in its client's usage while the row is open. Whoever changes the
-- row's phase counts it anew, in the same transaction.
ALTER TABLE work_owners ADD COLUMN counted INTEGER; -- the bytes that count in the client's usage; null: it does not count

CREATE TRIGGER work_owner_uncounted AFTER DELETE ON work_owners WHEN old.counted IS NOT NULL BEGIN
  UPDATE work_clients SET waiting = waiting - 1, bytes = bytes - old.counted WHERE client = old.client;
END;
