-- One client's remembered requests are bounded, so that no client has those of the others
-- forgotten. Rows of before have no client, and expire.
ALTER TABLE requests ADD COLUMN client TEXT;
CREATE INDEX requests_client ON requests (client, expires_at) WHERE client IS NOT NULL;
