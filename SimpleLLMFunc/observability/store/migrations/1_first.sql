-- Version 1: the tables of a new file.
CREATE TABLE counter ( seq INTEGER NOT NULL );
INSERT INTO counter (seq) VALUES (0);
CREATE TABLE processes ( id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, seen REAL NOT NULL );
CREATE TABLE versions (
    function TEXT NOT NULL, version TEXT NOT NULL, kind TEXT NOT NULL, docstring TEXT NOT NULL,
    signature TEXT NOT NULL, place TEXT NOT NULL, schema, tools, first_seen REAL NOT NULL,
    PRIMARY KEY (function, version)
);
CREATE TABLE prompts (
    id INTEGER PRIMARY KEY, function TEXT NOT NULL, version TEXT NOT NULL, digest TEXT NOT NULL,
    message NOT NULL, first_seen REAL NOT NULL, UNIQUE (function, version, digest)
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL, process INTEGER NOT NULL, trace_id TEXT NOT NULL,
    parent TEXT NOT NULL, parent_call TEXT NOT NULL, function TEXT NOT NULL, version TEXT NOT NULL,
    kind TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL, session TEXT NOT NULL, user TEXT NOT NULL,
    status TEXT NOT NULL, error TEXT NOT NULL, error_text TEXT NOT NULL, started REAL NOT NULL, seconds REAL,
    first_chunk_seconds REAL, turns INTEGER NOT NULL, failed_tries INTEGER NOT NULL, reasks INTEGER NOT NULL,
    repairs INTEGER NOT NULL, tool_calls INTEGER NOT NULL, failed_tool_calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL, cost REAL, cached INTEGER NOT NULL, streamed INTEGER NOT NULL,
    finish_reason TEXT NOT NULL, output_mode TEXT NOT NULL, question TEXT NOT NULL, answer_head TEXT NOT NULL,
    arguments, answer, value, incomplete INTEGER NOT NULL
);
CREATE UNIQUE INDEX runs_by_seq ON runs (seq);
CREATE INDEX runs_by_time ON runs (started);
CREATE INDEX runs_by_function ON runs (function, started);
CREATE INDEX runs_by_function_version ON runs (function, version, started, status);
CREATE INDEX runs_by_version ON runs (version, started);
CREATE INDEX runs_by_model ON runs (model, started);
CREATE INDEX runs_by_status ON runs (status, started);
CREATE INDEX runs_by_parent ON runs (parent, started);
CREATE INDEX runs_by_session ON runs (session, started);
CREATE INDEX runs_by_trace ON runs (trace_id);
CREATE TABLE turns (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    started REAL NOT NULL, seconds REAL, first_chunk_seconds REAL, model TEXT NOT NULL, provider TEXT NOT NULL,
    url TEXT NOT NULL, request, reply, finish_reason TEXT NOT NULL, tries INTEGER NOT NULL,
    cached INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL, cost REAL, PRIMARY KEY (run, number)
);
CREATE TABLE tries (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    at REAL NOT NULL, error TEXT NOT NULL, text TEXT NOT NULL, status INTEGER, pause REAL, model TEXT NOT NULL,
    next_model TEXT NOT NULL, PRIMARY KEY (run, number)
);
CREATE TABLE reviews (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    at REAL NOT NULL, accepted INTEGER NOT NULL, violations, repairs, text, PRIMARY KEY (run, number)
);
CREATE TABLE tool_calls (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    call_id TEXT NOT NULL, name TEXT NOT NULL, started REAL NOT NULL, seconds REAL, arguments, content,
    failed INTEGER NOT NULL, PRIMARY KEY (run, number)
);
CREATE TABLE messages (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL, turn INTEGER NOT NULL,
    message, prompt INTEGER, PRIMARY KEY (run, number)
)
