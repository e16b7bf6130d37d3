-- An intent may ask for a time before which it gets no nonce. It is asleep until the first claim
-- after that time. A sleeping intent is no head, so that claims do not read it.
ALTER TABLE work.intents ADD COLUMN not_before bigint  NOT NULL DEFAULT 0;      -- Unix seconds; 0: at once
ALTER TABLE work.intents ADD COLUMN asleep     boolean NOT NULL DEFAULT false;
CREATE INDEX intents_asleep ON work.intents (not_before) WHERE asleep;
