"""The steps of a decorated call, in the order of design note 002; each is a module, whose functions the note names."""

__all__ = ["chat", "common", "function"]
