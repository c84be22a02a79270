"""What our tests, our documentation and our users' tests share.

`SimpleLLMFunc.testing.contract` holds the suite that every `LLM_Interface` passes.
"""

from SimpleLLMFunc.testing.scripted import ScriptedLLM, ScriptedRequest, tool_calls

__all__ = ["ScriptedLLM", "ScriptedRequest", "tool_calls"]
