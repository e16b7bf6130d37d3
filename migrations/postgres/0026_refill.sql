-- Rows of before clients lack client, bytes and claimed, which only the log knows. They are
-- found, and filled in, until there are none.
CREATE INDEX queue_unfilled ON work.queue (chain, hash) WHERE bytes = 0;
