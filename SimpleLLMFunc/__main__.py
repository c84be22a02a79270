"""``python -m SimpleLLMFunc`` is the command line."""

from SimpleLLMFunc.cli.main import main

main(prog_name="python -m SimpleLLMFunc")
