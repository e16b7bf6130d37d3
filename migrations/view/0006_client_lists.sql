-- Lists of one client's intents by status, signer, subject or key are read along an index,
-- and cost what they show, whatever other intents the client has.

CREATE INDEX intents_client_status ON intents (client, status, position);
CREATE INDEX intents_client_signer ON intents (client, signer, position);
CREATE INDEX intents_client_subject ON intents (client, subject, position);
CREATE INDEX intents_client_wish ON intents (client, wish, position);
