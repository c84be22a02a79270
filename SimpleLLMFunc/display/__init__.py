"""How results, maps and stored runs show themselves in notebooks, and on terminals with `rich`: as cards of named facts."""

__all__ = ["cards", "results"]
