-- The hash link from an event to the previous event of its stream. Null: recorded before
-- links existed.
ALTER TABLE events ADD COLUMN link BLOB;
