-- The head of an intent, and the first behind it, are found without looking through all
-- that waits, and without the planner's idea of how much that is.
DROP INDEX work.notices_queued;
CREATE INDEX notices_queued ON work.notices (endpoint, intent, head, seq) WHERE stage = 'queued';

-- When due_at was last told. One that lies ahead was told before the clock was set back.
ALTER TABLE work.notice_endpoints ADD COLUMN told_at timestamptz;
CREATE INDEX notice_endpoints_told ON work.notice_endpoints (told_at) WHERE due_at IS NOT NULL;
