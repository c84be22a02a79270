-- Version 3: partial indexes, since each index costs every run a write. See `query.conditions` for their conditions.
DROP INDEX runs_by_function_version;
DROP INDEX runs_by_version;
DROP INDEX runs_by_status;
DROP INDEX runs_by_parent;
DROP INDEX runs_by_session;
CREATE INDEX runs_by_function_version ON runs (function, version, started, id, status);
CREATE INDEX runs_by_status ON runs (status, started) WHERE status != 'ok';
CREATE INDEX runs_by_parent ON runs (parent, started) WHERE parent != '';
CREATE INDEX runs_by_session ON runs (session, started) WHERE session != ''
