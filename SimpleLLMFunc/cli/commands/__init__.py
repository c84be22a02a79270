"""The commands, a module each; `SimpleLLMFunc/cli/main.py` lists them."""
