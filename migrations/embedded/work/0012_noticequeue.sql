-- Finds the head of an intent's queue and the entry behind it without scanning all queued
-- rows.
DROP INDEX notices_queued;
CREATE INDEX notices_queued ON notices (endpoint, intent, head, seq) WHERE stage = 'queued';

-- The time when due_at was last set. A time in the future means that the clock was
-- set back.
ALTER TABLE notice_endpoints ADD COLUMN told_at INTEGER;
CREATE INDEX notice_endpoints_told ON notice_endpoints (told_at) WHERE due_at IS NOT NULL;
