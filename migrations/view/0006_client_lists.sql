-- One client's intents by status, signer, subject or key are read along an index. The
-- cost of a list depends on its own rows, and not on the client's other intents.

CREATE INDEX intents_client_status ON intents (client, status, position);
CREATE INDEX intents_client_signer ON intents (client, signer, position);
CREATE INDEX intents_client_subject ON intents (client, subject, position);
CREATE INDEX intents_client_wish ON intents (client, wish, position);
