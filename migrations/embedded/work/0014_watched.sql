-- Rows that are only watched are few, and looked for each minute: not among all that wait.
CREATE INDEX work_watched ON work (chain, hash) WHERE phase = 'watched';
