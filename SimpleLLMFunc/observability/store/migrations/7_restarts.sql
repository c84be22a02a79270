-- Version 7: a run in a `durable` block stays one run when the block is restarted.
ALTER TABLE runs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0
