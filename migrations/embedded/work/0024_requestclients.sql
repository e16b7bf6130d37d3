-- Limits the remembered requests of one client, so that no client displaces those of
-- other clients. Rows from before have no client, and expire.
ALTER TABLE requests ADD COLUMN client TEXT;
CREATE INDEX requests_client ON requests (client, expires_at) WHERE client IS NOT NULL;
