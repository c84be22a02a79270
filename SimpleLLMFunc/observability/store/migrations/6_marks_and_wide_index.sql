-- Version 6: runs have marks, and one index holds all columns that lists sort, filter and sum by. See `query.RUNS`.
DROP INDEX runs_by_time;
DROP INDEX runs_by_function;
DROP INDEX runs_by_model;
DROP INDEX runs_by_status;
CREATE INDEX runs_by_time ON runs (started, id, function, version, model, provider, kind, status, error, seconds,
    first_chunk_seconds, cost, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cache_write_tokens, reasks,
    repairs, tool_calls, failed_tool_calls, failed_tries, cached, session, user);
CREATE TABLE marks (run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, thumb TEXT NOT NULL, score REAL,
    comment TEXT NOT NULL, tags TEXT NOT NULL, at REAL NOT NULL)
