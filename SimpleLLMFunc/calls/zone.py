"""Time zones by name, also on hosts without a zone database."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Final

from SimpleLLMFunc.errors import CallError

DEFAULT_ZONE: Final = "Asia/Shanghai"

# What they have been ever since 1991: enough for the time it is now, where there is no database to ask.
_FIXED: Final = {DEFAULT_ZONE: dt.timezone(dt.timedelta(hours=8), "CST"), "UTC": dt.UTC}


def zone_of(name: str) -> dt.tzinfo:
    """Return the zone of an IANA name such as ``Europe/Paris``.

    Raises:
        CallError: there is no such zone, or the host does not know it.
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        if name in _FIXED:
            return _FIXED[name]
        known = bool(zoneinfo.available_timezones())
        advice = "Use a name such as Asia/Shanghai." if known else "This host has no zone database: pip install tzdata."
        raise CallError(f"no time zone is called {name!r}. {advice}", {"time_zone": name}) from error
