-- A command for all webhook deliveries of an endpoint, executed in batches: 'give-up' for
-- queued ones, 'redeliver' for dead letters. It continues behind an intent and a
-- sequence. Clients take turns.
ALTER TABLE notice_endpoints ADD COLUMN sweep        TEXT    NOT NULL DEFAULT '';
ALTER TABLE notice_endpoints ADD COLUMN sweep_intent BLOB    NOT NULL DEFAULT x'00000000000000000000000000000000';
ALTER TABLE notice_endpoints ADD COLUMN sweep_seq    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notice_endpoints ADD COLUMN swept_at     INTEGER;
CREATE INDEX notice_endpoints_sweeps ON notice_endpoints (client) WHERE sweep <> '';
