"""Words about time, in Chinese and English, and the values that a slot makes of them."""

from __future__ import annotations

from SimpleLLMFunc.calls.slot.time_words.calendar_words import Calendar
from SimpleLLMFunc.calls.slot.time_words.timed import CUSTOM_TYPES, in_standard_words, timed

__all__ = ["CUSTOM_TYPES", "Calendar", "in_standard_words", "timed"]
