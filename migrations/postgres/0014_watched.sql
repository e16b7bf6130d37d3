-- Rows that are only watched are few, and looked for each minute: not among all that wait.
CREATE INDEX queue_watched ON work.queue (chain, hash) WHERE phase = 'watched';
