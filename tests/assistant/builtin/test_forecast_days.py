"""Days as people say them."""

from __future__ import annotations

from datetime import date

import pytest

from SimpleLLMFunc.assistant.builtin.forecast_days import read_days

WEDNESDAY = date(2026, 11, 25)
SUNDAY = date(2026, 11, 29)


def days(*texts):
    return [date.fromisoformat(text) for text in texts]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("", "2026-11-25"),
        ("今天", "2026-11-25"),
        ("今晚", "2026-11-25"),
        ("明天", "2026-11-26"),
        ("后天", "2026-11-27"),
        ("大后天", "2026-11-28"),
        ("昨天", "2026-11-24"),
        ("前天", "2026-11-23"),
        ("周三", "2026-11-25"),
        ("周六", "2026-11-28"),
        ("星期天", "2026-11-29"),
        ("礼拜一", "2026-11-30"),
        ("这周一", "2026-11-23"),
        ("本周六", "2026-11-28"),
        ("下周六", "2026-12-05"),
        ("下下周一", "2026-12-07"),
        ("上周五", "2026-11-20"),
        ("三天后", "2026-11-28"),
        ("十二天之后", "2026-12-07"),
        ("10天后", "2026-12-05"),
        ("两周后", "2026-12-09"),
        ("2026-11-30", "2026-11-30"),
        ("2026/11/30", "2026-11-30"),
        ("2026年11月30日", "2026-11-30"),
        ("２０２６－１１－３０", "2026-11-30"),
        ("11月30号", "2026-11-30"),
        ("1月2日", "2027-01-02"),
        ("30号", "2026-11-30"),
        ("3号", "2026-12-03"),
        ("30日", "2026-11-30"),
        ("10日", "2026-12-10"),
        ("十五号", "2026-12-15"),
        ("十二月一日", "2026-12-01"),
        ("明天下午三点", "2026-11-26"),
        ("明天的天气", "2026-11-26"),
        ("today", "2026-11-25"),
        ("Tomorrow", "2026-11-26"),
        ("tomorrow morning", "2026-11-26"),
        ("the day after tomorrow", "2026-11-27"),
        ("yesterday", "2026-11-24"),
        ("Saturday", "2026-11-28"),
        ("on Sat.", "2026-11-28"),
        ("Wednesday", "2026-11-25"),
        ("this Tuesday", "2026-12-01"),
        ("next Saturday", "2026-12-05"),
        ("in 3 days", "2026-11-28"),
        ("in two weeks", "2026-12-09"),
        ("5 days from now", "2026-11-30"),
        ("Nov 30", "2026-11-30"),
        ("November 30th, 2026", "2026-11-30"),
        ("30th of November", "2026-11-30"),
        ("2 Jan", "2027-01-02"),
        ("11/30", "2026-11-30"),
    ],
)
def test_one_day(said, meant):
    assert read_days(said, WEDNESDAY) == days(meant)


@pytest.mark.parametrize(
    ("said", "first", "count"),
    [
        ("周末", "2026-11-28", 2),
        ("this weekend", "2026-11-28", 2),
        ("下周末", "2026-12-05", 2),
        ("未来三天", "2026-11-25", 3),
        ("next 5 days", "2026-11-25", 5),
        ("未来一周", "2026-11-25", 7),
        ("本周", "2026-11-25", 5),
        ("下周", "2026-11-30", 7),
        ("next week", "2026-11-30", 7),
        ("未来30天", "2026-11-25", 16),
        ("近10日", "2026-11-25", 10),
        ("3天内", "2026-11-25", 3),
        ("明天到后天", "2026-11-26", 2),
        ("过去三天", "2026-11-23", 3),
        ("上周", "2026-11-16", 7),
    ],
)
def test_several_days(said, first, count):
    found = read_days(said, WEDNESDAY)
    assert found[0].isoformat() == first
    assert len(found) == count
    assert found == sorted(set(found))


def test_on_a_sunday():
    assert read_days("周日", SUNDAY) == [SUNDAY]
    assert read_days("周末", SUNDAY) == [SUNDAY]
    assert read_days("下周一", SUNDAY) == days("2026-11-30")
    assert read_days("next Monday", SUNDAY) == days("2026-11-30")
    assert read_days("周一", SUNDAY) == days("2026-11-30")


def test_the_end_of_the_year_and_of_february():
    assert read_days("明天", date(2026, 12, 31)) == days("2027-01-01")
    assert read_days("2月29日", date(2028, 2, 1)) == days("2028-02-29")
    assert read_days("31号", date(2026, 11, 30)) == days("2026-12-31")


@pytest.mark.parametrize(
    "said",
    [
        "someday",
        "2026",
        "前年",
        "2026-13-01",
        "2月30日",
        "32号",
        "0天",
        "明天或后天",
        "下" * 1000,
        "9" * 10**6,
        "(a+)+$",
        "周八",
        "a\x00b",
    ],
)
def test_what_names_no_day(said):
    with pytest.raises(ValueError, match="names no day") as caught:
        read_days(said, WEDNESDAY)
    assert len(str(caught.value)) < 100
