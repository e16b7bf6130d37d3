-- An intent may ask for a time before which it gets no nonce. It is asleep until the first claim
-- after that time. A sleeping intent is no head, so that claims do not read it.
ALTER TABLE intents ADD COLUMN not_before INTEGER NOT NULL DEFAULT 0;  -- Unix seconds; 0: at once
ALTER TABLE intents ADD COLUMN asleep     INTEGER NOT NULL DEFAULT 0;
CREATE INDEX intents_asleep ON intents (not_before) WHERE asleep = 1;
