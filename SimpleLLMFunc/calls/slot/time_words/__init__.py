"""Words about time, in Chinese and English."""

from SimpleLLMFunc.calls.slot.time_words.calendar_words import Calendar, Span

__all__ = ["Calendar", "Span"]
