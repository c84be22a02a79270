"""Time zones by name."""

import datetime as dt
import sys
import zoneinfo

import pytest

from SimpleLLMFunc.calls.zone import zone_of
from SimpleLLMFunc.errors import CallError

MOMENT = dt.datetime(2026, 11, 22, 20, tzinfo=dt.timezone.utc)


@pytest.fixture
def no_database(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tzdata.")]:
        monkeypatch.delitem(sys.modules, name)  # an earlier test has looked into it
    monkeypatch.setitem(sys.modules, "tzdata", None)  # where it is installed
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()


@pytest.mark.parametrize("has_database", [True, False])
def test_shanghai_and_utc_are_known_without_a_database_too(has_database, request):
    if not has_database:
        request.getfixturevalue("no_database")
        with pytest.raises(CallError, match="no zone database: pip install tzdata"):
            zone_of("Europe/Paris")
    assert MOMENT.astimezone(zone_of("Asia/Shanghai")).isoformat() == "2026-11-23T04:00:00+08:00"
    assert MOMENT.astimezone(zone_of("UTC")).isoformat() == "2026-11-22T20:00:00+00:00"


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "", "/etc/passwd", "../../etc/passwd", "Asia", "a\x00b", "x" * 3000, "北京"]
)
def test_a_wrong_name_is_named(name):
    with pytest.raises(CallError, match="no time zone is called") as caught:
        zone_of(name)
    assert caught.value.data == {"time_zone": name}
