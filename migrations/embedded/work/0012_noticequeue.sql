-- The head of an intent, and the first behind it, are found without looking through all
-- that waits.
DROP INDEX notices_queued;
CREATE INDEX notices_queued ON notices (endpoint, intent, head, seq) WHERE stage = 'queued';

-- When due_at was last told. One that lies ahead was told before the clock was set back.
ALTER TABLE notice_endpoints ADD COLUMN told_at INTEGER;
CREATE INDEX notice_endpoints_told ON notice_endpoints (told_at) WHERE due_at IS NOT NULL;
