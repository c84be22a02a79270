"""The path that the pages of 1.0 name; what is in it lives in `base/schemas/output_mode.py`."""

from SimpleLLMFunc.base.schemas import OutputSpec, choose_output_mode, compile_output

__all__ = ["OutputSpec", "choose_output_mode", "compile_output"]
