-- Notices of intents to clients' endpoints. What the log can rebuild is what is told;
-- whether it was told is kept here alone, so that without these rows everything is
-- told once more.

CREATE TABLE work.notice_endpoints (
  endpoint      uuid        PRIMARY KEY,
  url           text        NOT NULL,
  failures      bigint      NOT NULL DEFAULT 0,
  failing_since timestamptz,
  paused_until  timestamptz,
  disabled      text COLLATE "C" NOT NULL DEFAULT '',
  disabled_at   timestamptz,
  due_at        timestamptz            -- when there may be something to lease; null: nothing
) WITH (fillfactor = 50);
CREATE INDEX notice_endpoints_due ON work.notice_endpoints (due_at);

-- Whoever changes an endpoint's notices has locked the endpoint's row.
CREATE TABLE work.notices (
  endpoint     uuid        NOT NULL,
  intent       uuid        NOT NULL,
  seq          bigint      NOT NULL,
  body         bytea       NOT NULL,
  stage        text COLLATE "C" NOT NULL CHECK (stage IN ('queued', 'delivered', 'dead')),
  head         boolean     NOT NULL,   -- the first of its intent that is queued
  attempts     integer     NOT NULL,
  next_at      timestamptz NOT NULL,
  class        text        NOT NULL,
  cause        text        NOT NULL,
  status       integer     NOT NULL,
  last_at      timestamptz,
  holder       text,                   -- null: not leased
  leased_until timestamptz,
  settled_at   timestamptz,            -- null: queued
  PRIMARY KEY (endpoint, intent, seq),
  CHECK (stage = 'queued' OR NOT head AND holder IS NULL)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX notices_due     ON work.notices (endpoint, next_at)      WHERE head AND holder IS NULL;
CREATE INDEX notices_leased  ON work.notices (endpoint, leased_until) WHERE holder IS NOT NULL;
CREATE INDEX notices_queued  ON work.notices (endpoint, intent, seq)  WHERE stage = 'queued';
CREATE INDEX notices_dead    ON work.notices (endpoint, intent, seq)  WHERE stage = 'dead';
CREATE INDEX notices_settled ON work.notices (settled_at)             WHERE settled_at IS NOT NULL;
