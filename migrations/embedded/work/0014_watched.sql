-- Rows that are only watched are few, and read every minute. The index finds them without
-- scanning all waiting rows.
CREATE INDEX work_watched ON work (chain, hash) WHERE phase = 'watched';
