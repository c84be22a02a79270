"""What the assistant remembers of its users beyond a session: the protocol of a store, and one in SQLite."""

from SimpleLLMFunc.assistant.memory.memory import ChatMemoryIntegration, MemoryStore
from SimpleLLMFunc.assistant.memory.sqlite_memory import Memory, SqliteMemory

__all__ = ["ChatMemoryIntegration", "Memory", "MemoryStore", "SqliteMemory"]
