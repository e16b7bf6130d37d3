-- The range of positions of a stream's events that are only in the archive. Readers open
-- only the segments of these positions. 0: unknown.
ALTER TABLE streams ADD COLUMN archived_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN archived_to INTEGER NOT NULL DEFAULT 0;
