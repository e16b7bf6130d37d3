-- A lane compares an intent's fee ceiling with the price of gas, and adds up sizes, before it
-- reads intents. Rows from before have neither, and their intents are read first.
ALTER TABLE work.intents ADD COLUMN max_fee text   COLLATE "C" NOT NULL DEFAULT '';  -- wei per unit of gas; empty: no ceiling
ALTER TABLE work.intents ADD COLUMN size    bigint NOT NULL DEFAULT 0;               -- bytes
