"""Chinese and English words about time: a start and an end, in one zone, on any host."""

import datetime as dt
import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.calls.slot.time_words.calendar_words import Calendar

NOW = dt.datetime(2026, 11, 18, 14, 30, 15)  # a Wednesday
CALENDAR = Calendar("Asia/Shanghai", NOW)

WORDS = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
"""What each text means at that moment; what is not read."""


@pytest.mark.parametrize(("text", "day"), WORDS["days"].items())
def test_a_day(text, day):
    span = CALENDAR.read(text.ljust(80))
    assert (span.days, span.start < span.last) == ((day, day), True)


@pytest.mark.parametrize(("text", "ends"), WORDS["ranges"].items())
def test_a_stretch_of_days(text, ends):
    assert CALENDAR.read(text).days == tuple(ends)


@pytest.mark.parametrize(("text", "ends"), WORDS["on 2027-01-31"].items())
def test_days_at_the_end_of_a_month(text, ends):
    assert Calendar("Asia/Shanghai", dt.datetime(2027, 1, 31)).read(text).days == tuple(ends)


@pytest.mark.parametrize(("text", "moment"), WORDS["moments"].items())
def test_a_moment(text, moment):
    span = CALENDAR.read(text)
    assert span.start.isoformat() == span.last.isoformat() == f"{moment}+08:00"


@pytest.mark.parametrize(("text", "ends"), WORDS["stretches"].items())
def test_a_stretch_within_a_day_or_two(text, ends):
    span = CALENDAR.read(text)
    end = span.last + dt.timedelta(seconds=1)
    assert (span.start.isoformat(), end.isoformat()) == tuple(f"{each}+08:00" for each in ends)


@pytest.mark.parametrize("text", [*WORDS["unread"], "明天".ljust(81), "明天" * 100, "\ud800"])
def test_what_is_not_certain_is_not_read(text):
    assert CALENDAR.read(text) is None


def test_a_day_ends_with_its_last_second():
    span = CALENDAR.read("2024年5月")
    assert span.seconds[0] == int(dt.datetime.fromisoformat("2024-05-01T00:00:00+08:00").timestamp())
    assert span.seconds[1] == int(dt.datetime.fromisoformat("2024-05-31T23:59:59+08:00").timestamp())


@pytest.mark.parametrize("host", ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_zone_of_the_host_means_nothing(host, monkeypatch):
    instant = dt.datetime(2026, 11, 18, 18, 0, tzinfo=dt.UTC)  # the 19th in Shanghai, the 18th in New York
    monkeypatch.setenv("TZ", host)
    time.tzset()
    try:
        shanghai = Calendar("Asia/Shanghai", lambda: instant)
        assert shanghai.read("今天").days[0] == "2026-11-19"
        assert shanghai.read("今天").seconds[0] == 1795017600
        assert shanghai.read("2小时前").seconds[0] == int(instant.timestamp()) - 7200
        assert Calendar("America/New_York", instant).read("today").days[0] == "2026-11-18"
        assert shanghai.read("0001-01-01").seconds[0] == -62135625943
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_first_and_the_last_day_that_can_be_counted(zone):
    calendar = Calendar(zone, NOW)
    assert calendar.read("0001-01-01").seconds[0] < calendar.read("1970-01-01").seconds[0]
    assert calendar.read("9999-12-30 23:59").seconds[1] > calendar.read("9999-12-30").seconds[0]


def test_a_day_on_which_the_clocks_change():
    new_york = Calendar("America/New_York", dt.datetime(2026, 3, 7))
    span = new_york.read("tomorrow")
    assert span.seconds[1] - span.seconds[0] == 23 * 3600 - 1
    assert new_york.read("2026-03-08 15:00").start.isoformat() == "2026-03-08T15:00:00-04:00"
    for now in map(dt.datetime.fromisoformat, ("2024-03-10T06:30:00+00:00", "2024-11-03T05:30:00+00:00")):
        in_an_hour = Calendar("America/New_York", now).read("in an hour")
        assert in_an_hour.seconds[0] - now.timestamp() == 3600


def test_now_is_the_clock_where_nothing_else_is_said():
    before = dt.datetime.now(dt.timezone(dt.timedelta(hours=8))).date()
    read = dt.date.fromisoformat(Calendar("Asia/Shanghai").read("今天").days[0])
    assert dt.timedelta() <= read - before <= dt.timedelta(days=1)


@given(st.dates(dt.date(1800, 1, 1), dt.date(9000, 12, 31)))
def test_every_day_reads_the_same_in_all_its_forms(day):
    digits = str(day.year).zfill(4)
    chinese = "".join("〇一二三四五六七八九"[int(digit)] for digit in digits)
    forms = [
        day.isoformat(), day.strftime("%Y%m%d"), f"{day.year}年{day.month}月{day.day}日",
        f"{chinese}年{_in_chinese(day.month)}月{_in_chinese(day.day)}号", f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}", f"{day:%A}, {day:%B} {day.day}, {day.year}",
    ]  # fmt: skip
    for form in forms:
        span = CALENDAR.read(form)
        assert span is not None, form
        assert span.days == (day.isoformat(),) * 2, form


def _in_chinese(number: int) -> str:
    tens, ones = divmod(number, 10)
    return ("" if not tens else "十" if tens == 1 else "二三四五六七八九"[tens - 2] + "十") + (
        "一二三四五六七八九"[ones - 1] if ones else ""
    )


@given(st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1)))
def test_relative_words_mean_the_same_in_both_languages(today):
    calendar = Calendar("Asia/Shanghai", dt.datetime.combine(today, dt.time(9)))
    pairs = {
        "明天": "tomorrow", "前天": "the day before yesterday", "本周": "this week", "上个月": "last month", "下周五": "next friday",
        "周日": "sunday", "去年": "last year", "三个月后": "in three months", "最近7天": "last 7 days", "未来两周": "next two weeks",
        "下季度": "next quarter", "周末": "this weekend", "下周一到下周三": "next monday to next wednesday",
    }  # fmt: skip
    for chinese, english in pairs.items():
        assert calendar.read(chinese) == calendar.read(english) != None, chinese  # noqa: E711 - both, and none of them
    assert (
        calendar.read("上周").days[1]
        < calendar.read("本周").days[0]
        <= today.isoformat()
        <= calendar.read("本周").days[1]
    )


@settings(max_examples=300)
@example("百百号")
@example("十百十年")
@given(st.text(alphabet="上下本这周月年日天号一二三十百点半前后到至从-~ 0123456789:/.aegmnoprtuwy,(", max_size=14))
def test_no_text_breaks_it(text):
    span = CALENDAR.read(text)
    if span is not None:
        assert span.days[0] <= span.days[1]
        assert span.seconds[0] <= span.seconds[1]
