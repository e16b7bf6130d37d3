-- The number of remembered requests of each client. Counting them in the requests' index took
-- the only writer a time that grew with all of them. Requests from before 0024 have no client:
-- they are not counted, and expire.
CREATE TABLE request_counts (
  client   TEXT    PRIMARY KEY,
  requests INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO request_counts SELECT client, count(*) FROM requests WHERE client IS NOT NULL GROUP BY client;
CREATE TRIGGER requests_added AFTER INSERT ON requests WHEN new.client IS NOT NULL BEGIN
  INSERT INTO request_counts VALUES (new.client, 1) ON CONFLICT (client) DO UPDATE SET requests = requests + 1;
END;
CREATE TRIGGER requests_removed AFTER DELETE ON requests WHEN old.client IS NOT NULL BEGIN
  UPDATE request_counts SET requests = requests - 1 WHERE client = old.client;
  DELETE FROM request_counts WHERE client = old.client AND requests = 0;
END;
