-- The archive: events of long ago leave the log for files, a partition at a time.

-- From this position on, log.events is whole.
ALTER TABLE log.head ADD COLUMN begins bigint NOT NULL DEFAULT 1;

-- The files: each holds all events of positions first <= pos < past.
CREATE TABLE log.segments (
  first  bigint      PRIMARY KEY,
  past   bigint      NOT NULL UNIQUE,
  store  uuid        NOT NULL,  -- the id of the log's first event
  name   text        NOT NULL,
  hash   bytea       NOT NULL,  -- what the file's footer says
  events bigint      NOT NULL,
  bytes  bigint      NOT NULL,
  since  timestamptz NOT NULL,
  until  timestamptz NOT NULL,
  CHECK (first < past)
);

-- Events from dropped partitions whose streams are not settled: copied forward, so that
-- reading them takes no file. They are in the files as well.
CREATE TABLE log.kept (LIKE log.events INCLUDING ALL);
CREATE UNIQUE INDEX kept_stream ON log.kept (stream, version);

-- Drops the first partition if all of it lies below a position and in segments, and
-- returns where the log begins then. Whoever reads or writes the log waits meanwhile:
-- for the removal of a file, and for whoever reads. Appends are held up first, in the
-- order in which they take their locks themselves.
CREATE FUNCTION log.forget(below bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part   record;
  began  bigint;
  stored bigint;
BEGIN
  SELECT h.begins INTO began FROM log.head h FOR UPDATE;
  SELECT coalesce(max(s.past), 1) INTO stored FROM log.segments s;
  SELECT p.name, p.past INTO part FROM log.partitions p ORDER BY p.first LIMIT 1;
  IF part.past IS NULL OR part.past > below OR part.past > stored THEN
    RETURN began;
  END IF;
  EXECUTE format('DROP TABLE log.%I', part.name);
  DELETE FROM log.partitions p WHERE p.name = part.name;
  UPDATE log.head SET begins = part.past;
  RETURN part.past;
END $$;

-- Makes an empty partition for the positions from first on that were dropped last. Who
-- calls it fills it in the same database transaction.
CREATE FUNCTION log.recall(upward bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  began bigint;
  part  text := 'events_' || upward;
BEGIN
  LOCK TABLE log.partitions IN SHARE ROW EXCLUSIVE MODE;
  SELECT h.begins INTO began FROM log.head h;
  IF upward < 1 OR upward >= began THEN
    RAISE EXCEPTION 'the log begins at %, not beyond %', began, upward;
  END IF;
  EXECUTE format('CREATE TABLE log.%I (LIKE log.events INCLUDING ALL)', part);
  EXECUTE format('CREATE UNIQUE INDEX %I ON log.%I (stream, version)', part || '_stream', part);
  EXECUTE format('ALTER TABLE log.events ATTACH PARTITION log.%I FOR VALUES FROM (%s) TO (%s)', part, upward, began);
  INSERT INTO log.partitions (name, first, past) VALUES (part, upward, began);
END $$;
