-- What is done to all notices of an endpoint, some at a time: 'give-up' what is queued, or
-- 'redeliver' what is dead, behind an intent and a sequence. Clients take turns.
ALTER TABLE work.notice_endpoints
  ADD COLUMN sweep        text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN sweep_intent uuid   NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  ADD COLUMN sweep_seq    bigint NOT NULL DEFAULT 0,
  ADD COLUMN swept_at     timestamptz;
CREATE INDEX notice_endpoints_sweeps ON work.notice_endpoints (client) WHERE sweep <> '';
