-- Clients take turns when intents are claimed. Rows from before share the turn of the
-- client without a name.
ALTER TABLE intents ADD COLUMN client TEXT NOT NULL DEFAULT '';
DROP INDEX intents_heads;
CREATE INDEX intents_heads  ON intents (chain, wants, nonce_key, client, pos) WHERE head = 1 AND lane IS NULL;
CREATE INDEX intents_client ON intents (client);
