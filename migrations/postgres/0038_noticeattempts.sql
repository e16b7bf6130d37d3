-- What became of the attempts at an endpoint, for the client that owns it. Counted from here on.
ALTER TABLE work.notice_endpoints
  ADD COLUMN attempts    bigint  NOT NULL DEFAULT 0,
  ADD COLUMN delivered   bigint  NOT NULL DEFAULT 0,
  ADD COLUMN last_at     timestamptz,                 -- of the last attempt; null: none
  ADD COLUMN last_class  text    NOT NULL DEFAULT '',
  ADD COLUMN last_cause  text    NOT NULL DEFAULT '',
  ADD COLUMN last_status integer NOT NULL DEFAULT 0;
CREATE INDEX notice_endpoints_owned ON work.notice_endpoints (client, endpoint);
