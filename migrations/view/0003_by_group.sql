-- Finds a group's transactions without scanning all transactions of its sender, or of all
-- senders. The condition leaves out transactions without a group.

CREATE INDEX transactions_sender_group ON transactions (sender, group_id, position) WHERE group_id IS NOT NULL;
CREATE INDEX transactions_group ON transactions (group_id, position) WHERE group_id IS NOT NULL;
