"""Numbers and waits in the headers of a reply; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long the service wants us to wait, None where it did not say, or nothing usable.

    Args:
        headers: of the reply, found by lower-case name.
        now: seconds since the epoch, for a date.

    Source: RFC 9110, section 10.2.3; `retry-after-ms` is an extension of OpenAI's.
    """
    milliseconds = header_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = header_number(value)
    if seconds is not None:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp() - now
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def header_number(text: str | None) -> float | None:
    """Return the value of a header as a number from 0 up; None for anything else."""
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) and value >= 0 else None
