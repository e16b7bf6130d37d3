-- Webhook deliveries of intents' events to clients' endpoints. The log can rebuild the
-- events to deliver, but only these tables know which were delivered: without them every
-- event is delivered again.
CREATE TABLE notice_endpoints (
  endpoint      BLOB    PRIMARY KEY,
  url           TEXT    NOT NULL,
  failures      INTEGER NOT NULL DEFAULT 0,
  failing_since INTEGER,
  paused_until  INTEGER,
  disabled      TEXT    NOT NULL DEFAULT '',
  disabled_at   INTEGER,
  due_at        INTEGER            -- when there may be something to lease; null: nothing
) STRICT, WITHOUT ROWID;
CREATE INDEX notice_endpoints_due ON notice_endpoints (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE notices (
  endpoint     BLOB    NOT NULL,
  intent       BLOB    NOT NULL,
  seq          INTEGER NOT NULL,
  body         BLOB    NOT NULL,
  stage        TEXT    NOT NULL,   -- queued, delivered, dead
  head         INTEGER NOT NULL,   -- the first of its intent that is queued
  attempts     INTEGER NOT NULL,
  next_at      INTEGER NOT NULL,
  class        TEXT    NOT NULL,
  cause        TEXT    NOT NULL,
  status       INTEGER NOT NULL,
  last_at      INTEGER,
  holder       TEXT,               -- null: not leased
  lease_until  INTEGER,
  settled_at   INTEGER             -- null: queued
) STRICT;
CREATE UNIQUE INDEX notices_name    ON notices (endpoint, intent, seq);
CREATE INDEX        notices_due     ON notices (endpoint, next_at)     WHERE head = 1 AND holder IS NULL;
CREATE INDEX        notices_leased  ON notices (endpoint, lease_until) WHERE holder IS NOT NULL;
CREATE INDEX        notices_queued  ON notices (endpoint, intent, seq) WHERE stage = 'queued';
CREATE INDEX        notices_dead    ON notices (endpoint, intent, seq) WHERE stage = 'dead';
CREATE INDEX        notices_settled ON notices (settled_at)            WHERE settled_at IS NOT NULL;
