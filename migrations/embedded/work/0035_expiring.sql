-- Rows that may expire, by client: a client's rows are found without reading other clients' rows,
-- and the earliest of them without reading the rest.
DROP INDEX work_expiring;
CREATE INDEX work_expiring ON work (chain, client, expires_at) WHERE phase IN ('open', 'watched') AND expires_at IS NOT NULL;
