-- A lane compares an intent's fee ceiling with the price of gas, and adds up sizes, before it
-- reads intents. Rows from before have neither, and their intents are read first.
ALTER TABLE intents ADD COLUMN max_fee TEXT    NOT NULL DEFAULT '';  -- wei per unit of gas; empty: no ceiling
ALTER TABLE intents ADD COLUMN size    INTEGER NOT NULL DEFAULT 0;   -- bytes
