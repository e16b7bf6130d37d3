-- What ties an event to the one before it in its stream; null: recorded before there
-- were links.
ALTER TABLE events ADD COLUMN link BLOB;
