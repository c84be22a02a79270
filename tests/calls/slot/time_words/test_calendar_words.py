"""Chinese and English words about time: a start and an end, in one zone, on any host."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.calls.slot.time_words.calendar_words import Calendar

NOW = dt.datetime(2026, 11, 18, 14, 30, 15)  # a Wednesday
CALENDAR = Calendar("Asia/Shanghai", NOW)

DAYS = {
    # --- Chinese: days
    "今天": "2026-11-18", "今日": "2026-11-18", "明天": "2026-11-19", "明日": "2026-11-19", "后天": "2026-11-20",
    "後天": "2026-11-20", "大后天": "2026-11-21", "昨天": "2026-11-17", "昨日": "2026-11-17", "前天": "2026-11-16",
    "大前天": "2026-11-15", "三天后": "2026-11-21", "3天前": "2026-11-15", "两周后": "2026-12-02", "一个月前": "2026-10-18",
    "两年后": "2028-11-18", "三个月之后": "2027-02-18", "十二天以前": "2026-11-06", "一百零五天前": "2026-08-05",
    "周五": "2026-11-20", "星期天": "2026-11-22", "周一": "2026-11-23", "周三": "2026-11-18", "礼拜五": "2026-11-20",
    "下周一": "2026-11-23", "下週一": "2026-11-23", "下周周五": "2026-11-27", "上周三": "2026-11-11", "这周六": "2026-11-21",
    "本周一": "2026-11-16", "下下周二": "2026-12-01", "上上周日": "2026-11-08",
    "5月1日": "2026-05-01", "5月1号": "2026-05-01", "十月一日": "2026-10-01", "二十号": "2026-11-20", "二十一日": "2026-11-21",
    "2024年5月1日": "2024-05-01", "二〇二四年五月一日": "2024-05-01", "2024 年 5 月 1 日": "2024-05-01", "２０２４年５月１日": "2024-05-01",
    "下个月5号": "2026-12-05", "上月31日": "2026-10-31", "去年5月3日": "2025-05-03", "2026年11月18日星期三": "2026-11-18",
    "2026年11月18日（星期三）": "2026-11-18", "2026-11-18 周三": "2026-11-18",
    # --- English: days
    "today": "2026-11-18", "Tomorrow.": "2026-11-19", "yesterday": "2026-11-17", "the day after tomorrow": "2026-11-20",
    "the day before yesterday": "2026-11-16", "3 days ago": "2026-11-15", "in two weeks": "2026-12-02",
    "two days from now": "2026-11-20", "a month ago": "2026-10-18", "a week later": "2026-11-25",
    "next Monday": "2026-11-23", "next Friday": "2026-11-27", "last Friday": "2026-11-13", "Friday": "2026-11-20",
    "this Friday": "2026-11-20", "on Wed": "2026-11-18", "May 1, 2024": "2024-05-01", "1 May 2024": "2024-05-01",
    "May 1st": "2026-05-01", "the 1st of May": "2026-05-01", "Sept. 3 2024": "2024-09-03",
    "Wednesday, November 18, 2026": "2026-11-18", "wed 18 nov": "2026-11-18",
    # --- digits
    "2024-05-01": "2024-05-01", "2024/5/1": "2024-05-01", "2024.5.1": "2024-05-01", "20240501": "2024-05-01",
    "2024-2-29": "2024-02-29", "0001-01-01": "0001-01-01",
}  # fmt: skip

RANGES = {
    "本周": ("2026-11-16", "2026-11-22"), "这个星期": ("2026-11-16", "2026-11-22"), "上周": ("2026-11-09", "2026-11-15"),
    "下周": ("2026-11-23", "2026-11-29"), "下下周": ("2026-11-30", "2026-12-06"), "周末": ("2026-11-21", "2026-11-22"),
    "下周末": ("2026-11-28", "2026-11-29"), "上周末": ("2026-11-14", "2026-11-15"),
    "本月": ("2026-11-01", "2026-11-30"), "上个月": ("2026-10-01", "2026-10-31"), "下个月": ("2026-12-01", "2026-12-31"),
    "今年": ("2026-01-01", "2026-12-31"), "去年": ("2025-01-01", "2025-12-31"), "明年": ("2027-01-01", "2027-12-31"),
    "前年": ("2024-01-01", "2024-12-31"), "2024年": ("2024-01-01", "2024-12-31"), "2024年5月": ("2024-05-01", "2024-05-31"),
    "2024年2月": ("2024-02-01", "2024-02-29"), "去年5月": ("2025-05-01", "2025-05-31"), "明年三月": ("2027-03-01", "2027-03-31"),
    "5月份": ("2026-05-01", "2026-05-31"),
    "2024年第一季度": ("2024-01-01", "2024-03-31"), "本季度": ("2026-10-01", "2026-12-31"),
    "上季度": ("2026-07-01", "2026-09-30"), "下个季度": ("2027-01-01", "2027-03-31"),
    "最近三天": ("2026-11-16", "2026-11-18"), "过去7天": ("2026-11-12", "2026-11-18"),
    "近一个月": ("2026-10-19", "2026-11-18"), "未来三天": ("2026-11-19", "2026-11-21"),
    "接下来的两周": ("2026-11-19", "2026-12-02"),
    "5月1日到5月3日": ("2026-05-01", "2026-05-03"), "5月1日到3日": ("2026-05-01", "2026-05-03"), "5月1-3日": ("2026-05-01", "2026-05-03"),
    "从2024年5月1日至2024年5月3日": ("2024-05-01", "2024-05-03"), "2024年5月1日到3日": ("2024-05-01", "2024-05-03"),
    "2024-05-01至2024-05-03": ("2024-05-01", "2024-05-03"), "明天到后天": ("2026-11-19", "2026-11-20"), "3-5月": ("2026-03-01", "2026-05-31"),
    "周一到周五": ("2026-11-23", "2026-11-27"), "这周一到周五": ("2026-11-16", "2026-11-20"),
    "去年12月30日到今年1月2日": ("2025-12-30", "2026-01-02"), "11月18日—20日": ("2026-11-18", "2026-11-20"),
    "this week": ("2026-11-16", "2026-11-22"), "last week": ("2026-11-09", "2026-11-15"), "next week": ("2026-11-23", "2026-11-29"),
    "this weekend": ("2026-11-21", "2026-11-22"), "the weekend": ("2026-11-21", "2026-11-22"), "last month": ("2026-10-01", "2026-10-31"),
    "next month": ("2026-12-01", "2026-12-31"), "this year": ("2026-01-01", "2026-12-31"), "last year": ("2025-01-01", "2025-12-31"),
    "next quarter": ("2027-01-01", "2027-03-31"), "May 2024": ("2024-05-01", "2024-05-31"), "in May": ("2026-05-01", "2026-05-31"),
    "Q1 2024": ("2024-01-01", "2024-03-31"), "2024 Q4": ("2024-10-01", "2024-12-31"),
    "the second quarter of 2024": ("2024-04-01", "2024-06-30"),
    "2024": ("2024-01-01", "2024-12-31"), "in 2024": ("2024-01-01", "2024-12-31"), "2024-05": ("2024-05-01", "2024-05-31"),
    "last 7 days": ("2026-11-12", "2026-11-18"), "the past 3 days": ("2026-11-16", "2026-11-18"), "next 3 days": ("2026-11-19", "2026-11-21"),

    "between May 1 and May 3": ("2026-05-01", "2026-05-03"),
    "2024-05-01 to 2024-05-03": ("2024-05-01", "2024-05-03"), "2024-05-01 ~ 2024-05-03": ("2024-05-01", "2024-05-03"),
    "2023-2025": ("2023-01-01", "2025-12-31"),
}  # fmt: skip

MOMENTS = {
    "明天下午三点": "2026-11-19T15:00:00", "明天下午3点半": "2026-11-19T15:30:00", "明早九点": "2026-11-19T09:00:00",
    "下周一上午10点一刻": "2026-11-23T10:15:00", "今晚8点": "2026-11-18T20:00:00", "后天凌晨两点": "2026-11-20T02:00:00",
    "凌晨12点": "2026-11-18T00:00:00", "晚上12点": "2026-11-19T00:00:00", "中午12点": "2026-11-18T12:00:00", "中午1点": "2026-11-18T13:00:00",
    "2024年5月1日 8:05": "2024-05-01T08:05:00", "2024年5月1日8时5分": "2024-05-01T08:05:00", "20点": "2026-11-18T20:00:00",
    "24点": "2026-11-19T00:00:00", "2024-05-01下午3点": "2024-05-01T15:00:00",
    "2小时前": "2026-11-18T12:30:15", "现在": "2026-11-18T14:30:15", "周三15:00": "2026-11-18T15:00:00",
    "tomorrow at 3pm": "2026-11-19T15:00:00", "3:30 p.m. tomorrow": "2026-11-19T15:30:00", "12am": "2026-11-18T00:00:00",
    "tomorrow noon": "2026-11-19T12:00:00", "2024-05-01 at 3pm": "2024-05-01T15:00:00",
    "15:00": "2026-11-18T15:00:00", "in 90 minutes": "2026-11-18T16:00:15", "an hour ago": "2026-11-18T13:30:15",
    "now": "2026-11-18T14:30:15", "2024-05-01 15:30": "2024-05-01T15:30:00", "2024-05-01T08:30:00Z": "2024-05-01T16:30:00",
    "2024-05-01T08:30:00.123+02:00": "2024-05-01T14:30:00", "2024-05-01 08:30:15 UTC": "2024-05-01T16:30:15",
    "2024-05-01T08:30:00+0800": "2024-05-01T08:30:00",
}  # fmt: skip

STRETCHES = {
    "今晚": ("2026-11-18T18:00:00", "2026-11-19T00:00:00"), "明天上午": ("2026-11-19T06:00:00", "2026-11-19T12:00:00"),
    "今晚8点到10点": ("2026-11-18T20:00:00", "2026-11-18T22:00:00"), "下午三点到五点": ("2026-11-18T15:00:00", "2026-11-18T17:00:00"),
    "下午3:00到5:00": ("2026-11-18T15:00:00", "2026-11-18T17:00:00"),
    "周一上午9点到周二下午5点": ("2026-11-23T09:00:00", "2026-11-24T17:00:00"),
    "tomorrow 3pm to 5pm": ("2026-11-19T15:00:00", "2026-11-19T17:00:00"),
    "this morning": ("2026-11-18T06:00:00", "2026-11-18T12:00:00"),
    "tonight": ("2026-11-18T18:00:00", "2026-11-19T00:00:00"), "next Friday in the afternoon": ("2026-11-27T12:00:00", "2026-11-27T18:00:00"),

}  # fmt: skip

UNREAD = [
    "随便", "不知道", "一会儿", "几天后", "第三天", "月底", "年初", "国庆节", "三天内", "周五或者周六", "周一和周三", "32月40日", "二月三十日", "13月",
    "25点", "上午15点", "晚上3点", "2026年11月18日星期四", "廿五日", "99999年", "9999-12-31", "一亿年后", "5月3日到5月1日", "零天后的", "五二十天后", "半天后", "近半天",
    "明天到", "到明天", "至", "-", "天", "年", "月",
    "asap", "soon", "whenever", "banana", "the big day", "May be", "marching on", "monday or tuesday", "Monday and Tuesday", "by Friday",
    "since Monday", "at 3", "the 5th", "3 to 5pm", "3pm to tomorrow", "Dec 30 to Jan 2", "from 9 to 5", "3pm to tomorrow 5pm", "midnight", "13pm", "tomorrow at 25:00", "Thursday, November 18, 2026",
    "32 May", "the 31st of June", "the 31st", "the third half of 2024", "in 9999 years", "last 0 days", "05/01/2024", "3", "2024-13-45",
    "2024-5/1", "2023-02-29", "2026-11-18T25:00:00", "1714521600", "", "   ", "x" * 200, "明天" * 100, "\ud800",
]  # fmt: skip


@pytest.mark.parametrize(("text", "day"), DAYS.items())
def test_a_day(text, day):
    span = CALENDAR.read(text)
    assert (span.days, span.start < span.last) == ((day, day), True)


@pytest.mark.parametrize(("text", "ends"), RANGES.items())
def test_a_stretch_of_days(text, ends):
    span = CALENDAR.read(text)
    assert span.days == ends


@pytest.mark.parametrize(("text", "moment"), MOMENTS.items())
def test_a_moment(text, moment):
    span = CALENDAR.read(text)
    assert span.start.isoformat() == span.last.isoformat() == f"{moment}+08:00"


@pytest.mark.parametrize(("text", "ends"), STRETCHES.items())
def test_a_stretch_within_a_day_or_two(text, ends):
    span = CALENDAR.read(text)
    end = span.last + dt.timedelta(seconds=1)
    assert (span.start.isoformat(), end.isoformat()) == tuple(f"{each}+08:00" for each in ends)


@pytest.mark.parametrize("text", UNREAD)
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


def test_now_is_the_clock_where_nothing_else_is_said():
    before = dt.datetime.now(dt.timezone(dt.timedelta(hours=8))).date()
    read = dt.date.fromisoformat(Calendar("Asia/Shanghai").read("今天").days[0])
    assert dt.timedelta() <= read - before <= dt.timedelta(days=1)


@given(st.dates(dt.date(1800, 1, 1), dt.date(9000, 12, 31)))
def test_every_day_reads_the_same_in_all_its_forms(day):
    digits = str(day.year).zfill(4)
    chinese = "".join("〇一二三四五六七八九"[int(digit)] for digit in digits)
    forms = [
        day.isoformat(),
        day.strftime("%Y%m%d"),
        f"{day.year}年{day.month}月{day.day}日",
        f"{chinese}年{_in_chinese(day.month)}月{_in_chinese(day.day)}号",
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
        f"{day:%A}, {day:%B} {day.day}, {day.year}",
    ]
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
