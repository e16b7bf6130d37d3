-- Rows from before clients existed lack client, bytes and claimed, which only the log
-- knows. The index finds them to be filled in, until there are none.
CREATE INDEX work_unfilled ON work (chain, hash) WHERE bytes = 0;
