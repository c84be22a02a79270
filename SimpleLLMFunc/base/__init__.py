"""The reusable core: the one loop, its events, tool calls and messages; it knows no decorator, Call or assistant.

`ReAct` goes round; `events` are the facts that it tells; `run` holds one run, `parsing` and `schemas` the way from text to
a typed value and back, `templates` the prompts' engines. The notes name `ReAct`, `messages`, `post_process`, `tool_call` and
`type_resolve`, whose functions others call by these paths.
"""

__all__ = [
    "ReAct", "events", "json_action", "messages", "metadata", "output_mode", "parsing", "partial", "post_process",
    "request", "result", "run", "schemas", "templates", "tool_call", "tool_result", "type_resolve",
]  # fmt: skip
