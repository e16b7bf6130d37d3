-- Finds intents by target, selector, metadata and nonce, and by time. A reader of its own fills these
-- tables, from the log's beginning on after an upgrade; until it is done, lists with these filters are
-- incomplete.

CREATE TABLE intent_terms (
  intent   bytea  NOT NULL,
  term     bytea  NOT NULL,  -- what may be searched for: its kind in one byte, then its content
  client   text   NOT NULL,
  position bigint NOT NULL,  -- of the intent's Requested: newest first is by this
  PRIMARY KEY (intent, term)
);

CREATE INDEX intent_terms_client ON intent_terms (term, client, position);
CREATE INDEX intent_terms_term ON intent_terms (term, position);

CREATE TABLE intent_times (
  intent       bytea  NOT NULL PRIMARY KEY,
  client       text   NOT NULL,
  position     bigint NOT NULL,
  requested_at bigint NOT NULL  -- microseconds since 1970, by the clock of the replica that accepted it
);

CREATE INDEX intent_times_client ON intent_times (client, requested_at);
CREATE INDEX intent_times_requested ON intent_times (requested_at);
