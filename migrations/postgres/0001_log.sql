-- The log: what is never lost. Events, and the signed bytes beside them.

-- The position of the last event. Every commit of appends locks this one row first
-- and so takes its turn: positions are dense and rise in commit order.
CREATE TABLE log.head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  pos bigint  NOT NULL
) WITH (fillfactor = 10);  -- room for its next versions on the same page
INSERT INTO log.head (pos) VALUES (0);

-- no is the position of the stream's first event: unique without a sequence, and
-- it names the first partition that a reader of the stream has to look into.
CREATE TABLE log.streams (
  no       bigint NOT NULL,
  version  bigint NOT NULL,
  last_pos bigint NOT NULL,
  name     text COLLATE "C" NOT NULL
) WITH (fillfactor = 80);  -- version and last_pos change in place
CREATE UNIQUE INDEX streams_no   ON log.streams (no);
CREATE UNIQUE INDEX streams_name ON log.streams (name);

CREATE TABLE log.events (
  pos         bigint      NOT NULL,
  stream      bigint      NOT NULL,  -- log.streams.no
  version     bigint      NOT NULL,
  at          timestamptz NOT NULL DEFAULT clock_timestamp(),
  id          uuid        NOT NULL,
  name        text COLLATE "C" NOT NULL,
  data        bytea       NOT NULL,  -- as received: jsonb would reorder it
  correlation uuid,
  causation   uuid,
  actor       text        NOT NULL,
  trace       text        NOT NULL,
  PRIMARY KEY (pos)
) PARTITION BY RANGE (pos);

-- The partitions of log.events: positions first <= pos < past.
CREATE TABLE log.partitions (
  name  text   PRIMARY KEY,
  first bigint NOT NULL UNIQUE,
  past  bigint NOT NULL UNIQUE
);

-- Makes partitions of a number of positions until one holds the position upto, and
-- returns the first position that none holds. The partition is made beside the
-- table and then attached, which locks out neither readers nor writers. It runs
-- with its owner's rights, so that the service's role need not own the log.
CREATE FUNCTION log.extend(upto bigint, size bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  edge bigint;
  part text;
BEGIN
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

-- Sealed payloads, and apart from them the wrapped keys that open them: a backup
-- without log.payload_keys holds nothing that can be read.
CREATE TABLE log.payloads (
  chain  bigint      NOT NULL,
  hash   bytea       NOT NULL,
  kept   timestamptz NOT NULL DEFAULT clock_timestamp(),
  sealed bytea       NOT NULL,
  PRIMARY KEY (chain, hash)
);
ALTER TABLE log.payloads ALTER COLUMN sealed SET STORAGE EXTERNAL;  -- sealed bytes do not compress

CREATE TABLE log.payload_keys (
  chain   bigint NOT NULL,
  hash    bytea  NOT NULL,
  master  bigint NOT NULL,  -- which master key wrapped this one
  wrapped bytea  NOT NULL,
  PRIMARY KEY (chain, hash)
);
