-- One client's remembered requests are bounded, so that no client has those of the others
-- forgotten. Rows of before have no client, and expire.
ALTER TABLE work.requests ADD COLUMN client text COLLATE "C";
CREATE INDEX requests_client ON work.requests (client, expires_at) WHERE client IS NOT NULL;
