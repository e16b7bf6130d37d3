-- Rows that may expire, by client: a client's rows are found without reading other clients' rows,
-- and the earliest of them without reading the rest.
DROP INDEX work.queue_expiring;
CREATE INDEX queue_expiring ON work.queue (chain, client, expires_at, hash)
  WHERE phase IN ('open', 'watched') AND expires_at > (-9223372036854775808)::bigint;
