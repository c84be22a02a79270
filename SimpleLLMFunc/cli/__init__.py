"""The command line: `simplellmfunc`, and `python -m SimpleLLMFunc`."""
