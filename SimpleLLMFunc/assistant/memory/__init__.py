"""What the assistant remembers of its users beyond a session: the protocol of a store, and one in SQLite."""
