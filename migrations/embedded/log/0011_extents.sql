-- Where those events of a stream lay that are in the archive only, so that readers look
-- into the segments of these positions and into no others; 0: not known.
ALTER TABLE streams ADD COLUMN archived_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN archived_to INTEGER NOT NULL DEFAULT 0;
