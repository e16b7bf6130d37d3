-- What ties an event to the one before it in its stream; null: recorded before there
-- were links. Partitions get the column with their parent, now and when they are made.
ALTER TABLE log.events ADD COLUMN link bytea;
