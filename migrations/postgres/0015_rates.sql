-- How often is asked, of all replicas together. Any row may be deleted at any time: its
-- bucket is full then. So the table need not survive a crash of the server.
CREATE UNLOGGED TABLE work.rates (
  bucket  bytea       PRIMARY KEY,
  full_at timestamptz NOT NULL  -- when there is as much as ever
);
