"""The command line: `simplellmfunc`, and `python -m SimpleLLMFunc`."""

__all__ = ["main"]
