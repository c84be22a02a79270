"""The steps that functions and chats share: signature, log context, what prompts have in common, tools made ready."""

__all__ = [
    "arguments", "calibration", "log_context", "options", "prompt", "react", "response", "run", "signature",
    "types",
]  # fmt: skip
