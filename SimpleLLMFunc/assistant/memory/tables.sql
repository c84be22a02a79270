CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, user BLOB NOT NULL, session TEXT NOT NULL, role TEXT NOT NULL,
    content TEXT NOT NULL, at REAL NOT NULL, extracted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX messages_of_session ON messages (user, session, id);
CREATE INDEX messages_to_extract ON messages (user, extracted, id);
CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, user BLOB NOT NULL, type TEXT NOT NULL, text TEXT NOT NULL,
    source TEXT NOT NULL, at REAL NOT NULL, vector BLOB
);
CREATE INDEX memories_of_user ON memories (user, at);
CREATE TABLE summaries (
    user BLOB NOT NULL, session TEXT NOT NULL, text TEXT NOT NULL, last_message INTEGER NOT NULL,
    at REAL NOT NULL, PRIMARY KEY (user, session)
);
