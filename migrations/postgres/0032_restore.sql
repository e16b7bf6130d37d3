-- A restore fills a table of its own, and attaches it to the log at the end. So it blocks
-- neither appends nor the making of partitions while it copies.
--
-- The order of locks, for every transaction that takes more than one of them:
--
--   1. the row of log.head (FOR UPDATE)
--   2. log.partitions
--   3. log.events, and its partitions
--
-- log.extend, log.forget and log.rejoin follow it, and so does a commit of appends: it locks
-- the head before it calls log.extend. They are short; a restore's copying holds none of these
-- locks.

-- As in 0001, but the function locks the head itself.
CREATE OR REPLACE FUNCTION log.extend(upto bigint, size bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  edge bigint;
  part text;
BEGIN
  PERFORM 1 FROM log.head FOR UPDATE;
  LOCK TABLE log.partitions IN SHARE ROW EXCLUSIVE MODE;
  SELECT coalesce(max(p.past), 1) INTO edge FROM log.partitions p;
  WHILE edge <= upto LOOP
    part := 'events_' || edge;
    EXECUTE format('CREATE TABLE log.%I (LIKE log.events INCLUDING ALL)', part);
    -- The head row guards versions already; here the database guards them again.
    -- A partitioned table cannot: its unique indexes must hold the position.
    EXECUTE format('CREATE UNIQUE INDEX %I ON log.%I (stream, version)', part || '_stream', part);
    EXECUTE format('ALTER TABLE log.events ATTACH PARTITION log.%I FOR VALUES FROM (%s) TO (%s)',
                   part, edge, edge + size);
    INSERT INTO log.partitions (name, first, past) VALUES (part, edge, edge + size);
    edge := edge + size;
  END LOOP;
  RETURN edge;
END $$;

-- Refuses a role that may not insert events, and returns its name. The functions below run
-- with their owner's rights, and a role that only reads the log may call them.
CREATE FUNCTION log.writer() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  caller text := coalesce(nullif(current_setting('role'), 'none'), session_user);
BEGIN
  IF NOT has_table_privilege(caller, 'log.events', 'INSERT') THEN
    RAISE insufficient_privilege USING MESSAGE = format('%s may not insert into log.events', caller);
  END IF;
  RETURN caller;
END $$;

-- Drops the table of a restore that did not finish; null: of every such restore.
CREATE FUNCTION log.discard(unfinished text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text;
BEGIN
  PERFORM log.writer();
  FOR name IN SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = 'log'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^recalled_[0-9]+$'
      AND (unfinished IS NULL OR c.relname = unfinished) LOOP
    EXECUTE format('DROP TABLE IF EXISTS log.%I', name);
  END LOOP;
END $$;

-- Makes an empty table for the dropped positions first <= pos < past, which the caller fills,
-- and returns its name. Each name is used once, so that a restore that was overtaken by
-- another one cannot write into the other's table.
DROP FUNCTION log.recall(bigint);
CREATE FUNCTION log.recall(first bigint, past bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  caller text := log.writer();
  filled text := 'recalled_' || txid_current();
BEGIN
  IF first < 1 OR first >= past THEN
    RAISE EXCEPTION 'there is no position from % to %', first, past - 1;
  END IF;
  PERFORM log.discard(NULL);
  -- The constraint spares the attaching a read of the whole table; a vacuum would delay it.
  EXECUTE format('CREATE TABLE log.%I (LIKE log.events INCLUDING ALL, CONSTRAINT recalled CHECK (pos >= %s AND pos < %s)) WITH (autovacuum_enabled = off)',
                 filled, first, past);
  EXECUTE format('CREATE UNIQUE INDEX %I ON log.%I (stream, version)', filled || '_stream', filled);
  EXECUTE format('GRANT INSERT ON log.%I TO %I', filled, caller);
  RETURN filled;
END $$;

-- Attaches a filled table, with which the log begins at the position upward instead of past.
-- It waits for readers and writers of the log, and they wait for it: a reader must not see the
-- new beginning without the new partition.
CREATE FUNCTION log.rejoin(filled text, upward bigint, past bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  began bigint;
  part  text := 'events_' || upward;
BEGIN
  PERFORM log.writer();
  IF filled !~ '^recalled_[0-9]+$' THEN
    RAISE EXCEPTION '% is no table of a restore', filled;
  END IF;
  SELECT h.begins INTO began FROM log.head h FOR UPDATE;
  IF began = upward THEN
    RETURN;  -- an earlier call has done it
  END IF;
  IF began <> past THEN
    RAISE EXCEPTION 'the log begins at %, not at %', began, past;
  END IF;
  LOCK TABLE log.partitions IN SHARE ROW EXCLUSIVE MODE;
  LOCK TABLE ONLY log.events IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('ALTER TABLE log.%I RENAME TO %I', filled, part);
  EXECUTE format('ALTER INDEX log.%I RENAME TO %I', filled || '_pkey', part || '_pkey');
  EXECUTE format('ALTER INDEX log.%I RENAME TO %I', filled || '_stream', part || '_stream');
  EXECUTE format('ALTER TABLE log.events ATTACH PARTITION log.%I FOR VALUES FROM (%s) TO (%s)', part, upward, past);
  EXECUTE format('ALTER TABLE log.%I DROP CONSTRAINT recalled, RESET (autovacuum_enabled)', part);
  INSERT INTO log.partitions (name, first, past) VALUES (part, upward, past);
  UPDATE log.head SET begins = upward;
END $$;
