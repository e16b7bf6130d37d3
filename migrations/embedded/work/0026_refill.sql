-- Rows of before clients lack client, bytes and claimed, which only the log knows. They are
-- found, and filled in, until there are none.
CREATE INDEX work_unfilled ON work (chain, hash) WHERE bytes = 0;
