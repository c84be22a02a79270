-- Version 4: a turn has request headers.
ALTER TABLE turns ADD COLUMN headers
