-- Clients take turns when webhook deliveries are leased. Endpoints from before have no
-- client until a delivery is queued for them.
ALTER TABLE notice_endpoints ADD COLUMN client TEXT NOT NULL DEFAULT '';
CREATE INDEX notice_endpoints_turns ON notice_endpoints (client, due_at) WHERE due_at IS NOT NULL;

-- The time when an intent with the endpoint was last requested.
ALTER TABLE notice_endpoints ADD COLUMN asked_at INTEGER;
CREATE INDEX notice_endpoints_asked ON notice_endpoints (client, asked_at) WHERE disabled = '';
