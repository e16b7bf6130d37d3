-- Further owners: clients that submitted the bytes of a row after its first client. The row is
-- due in the turn of each owner, at the owner's own time and under its own hold. A row without
-- further owners has no rows here, and costs nothing more.
--
-- Whoever changes an owner's row holds the lock of its row in work.queue.
ALTER TABLE work.queue ADD COLUMN shared boolean; -- null: written before owners were stored, not known

CREATE TABLE work.owners (
  chain        bigint      NOT NULL,
  hash         bytea       NOT NULL,
  client       text COLLATE "C" NOT NULL,
  account      uuid        NOT NULL,
  next_at      timestamptz NOT NULL,
  held_since   timestamptz,                     -- null: not set aside
  -- Copies of the row's state. The triggers keep them up to date.
  free         boolean     NOT NULL DEFAULT false, -- open and not parked
  attempts     integer     NOT NULL DEFAULT 0,
  leased_until timestamptz,
  due          timestamptz NOT NULL GENERATED ALWAYS AS (greatest(next_at, leased_until)) STORED,
  PRIMARY KEY (chain, hash, client)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX owners_first ON work.owners (chain, client, due) WHERE free AND held_since IS NULL AND attempts = 0;
CREATE INDEX owners_again ON work.owners (chain, client, due) WHERE free AND held_since IS NULL AND attempts > 0;
CREATE INDEX owners_held  ON work.owners (account, attempts, due) WHERE held_since IS NOT NULL;

-- An owner's due time is its own, except when the queue makes the row due earlier: a nonce was
-- used, a window opened, a block left the chain.
CREATE FUNCTION work.keep_owners() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM work.owners;
  ELSIF TG_OP = 'DELETE' THEN
    DELETE FROM work.owners o WHERE o.chain = OLD.chain AND o.hash = OLD.hash;
  ELSE
    UPDATE work.owners o SET
      free = NEW.phase = 'open' AND NOT NEW.parked, attempts = NEW.attempts, leased_until = NEW.leased_until,
      held_since = CASE WHEN NEW.phase = 'open' THEN o.held_since END,
      next_at = CASE WHEN NEW.phase = 'open' AND OLD.phase <> 'open' THEN NEW.next_at
                     WHEN NEW.next_at < OLD.next_at THEN least(o.next_at, NEW.next_at) ELSE o.next_at END
    WHERE o.chain = NEW.chain AND o.hash = NEW.hash;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_shared AFTER UPDATE ON work.queue FOR EACH ROW WHEN (NEW.shared) EXECUTE FUNCTION work.keep_owners();
CREATE TRIGGER queue_unshared AFTER DELETE ON work.queue FOR EACH ROW WHEN (OLD.shared) EXECUTE FUNCTION work.keep_owners();
CREATE TRIGGER queue_emptied AFTER TRUNCATE ON work.queue FOR EACH STATEMENT EXECUTE FUNCTION work.keep_owners();

CREATE INDEX queue_unknown ON work.queue (chain, hash) WHERE shared IS NULL AND phase = 'open';
