-- Every client has its turn when notices are leased. Endpoints of before are nobody's until
-- something is queued for them.
ALTER TABLE work.notice_endpoints ADD COLUMN client text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX notice_endpoints_turns ON work.notice_endpoints (client, due_at) WHERE due_at IS NOT NULL;

-- When an intent was last asked for with the endpoint.
ALTER TABLE work.notice_endpoints ADD COLUMN asked_at timestamptz;
CREATE INDEX notice_endpoints_asked ON work.notice_endpoints (client, asked_at) WHERE disabled = '';
