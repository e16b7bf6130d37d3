-- What became of the attempts at an endpoint, for the client that owns it. Counted from here on.
ALTER TABLE notice_endpoints ADD COLUMN attempts    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notice_endpoints ADD COLUMN delivered   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notice_endpoints ADD COLUMN last_at     INTEGER;                     -- of the last attempt; null: none
ALTER TABLE notice_endpoints ADD COLUMN last_class  TEXT    NOT NULL DEFAULT '';
ALTER TABLE notice_endpoints ADD COLUMN last_cause  TEXT    NOT NULL DEFAULT '';
ALTER TABLE notice_endpoints ADD COLUMN last_status INTEGER NOT NULL DEFAULT 0;
CREATE INDEX notice_endpoints_owned ON notice_endpoints (client, endpoint);
