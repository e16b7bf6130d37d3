-- What is done to all notices of an endpoint, some at a time: 'give-up' what is queued, or
-- 'redeliver' what is dead, behind an intent and a sequence. Clients take turns.
ALTER TABLE notice_endpoints ADD COLUMN sweep        TEXT    NOT NULL DEFAULT '';
ALTER TABLE notice_endpoints ADD COLUMN sweep_intent BLOB    NOT NULL DEFAULT x'00000000000000000000000000000000';
ALTER TABLE notice_endpoints ADD COLUMN sweep_seq    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notice_endpoints ADD COLUMN swept_at     INTEGER;
CREATE INDEX notice_endpoints_sweeps ON notice_endpoints (client) WHERE sweep <> '';
