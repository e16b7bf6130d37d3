-- A further owner's turn counts in its client's usage while the row is open. Whoever changes the
-- row's phase counts it anew, in the same transaction. Rows of an older version are counted when
-- they change next.
ALTER TABLE work.owners ADD COLUMN counted bigint; -- the bytes that count in the client's usage; null: it does not count

-- An older version removes rows without counting.
CREATE FUNCTION work.uncount_owner() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE work.queue_clients c SET waiting = c.waiting - 1, bytes = c.bytes - OLD.counted WHERE c.client = OLD.client;
  RETURN NULL;
END $$;
CREATE TRIGGER owners_uncounted AFTER DELETE ON work.owners FOR EACH ROW WHEN (OLD.counted IS NOT NULL) EXECUTE FUNCTION work.uncount_owner();
