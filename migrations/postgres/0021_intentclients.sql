-- Every client has its turn when intents are claimed. Rows of before are nobody's: they share
-- the turn of the client without a name.
ALTER TABLE work.intents ADD COLUMN client text COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX work.intents_heads;
CREATE INDEX intents_heads ON work.intents (chain, wants, nonce_key, client, pos) WHERE head AND lane IS NULL;
-- For counting a client's rows. Its operators give the planner no order of clients, which it
-- would walk through in place of intents_heads.
CREATE INDEX intents_client ON work.intents (client text_pattern_ops);
