-- A group's transactions are found without looking at all of their sender's, or at
-- everybody's. The condition spares what has no group.

CREATE INDEX transactions_sender_group ON transactions (sender, group_id, position) WHERE group_id IS NOT NULL;
CREATE INDEX transactions_group ON transactions (group_id, position) WHERE group_id IS NOT NULL;
