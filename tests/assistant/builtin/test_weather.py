"""The weather tool, against replies of the shapes that Open-Meteo gives."""

from datetime import UTC, date, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from SimpleLLMFunc.assistant.builtin.weather import OpenMeteo, read_days, weather_tools
from SimpleLLMFunc.errors import BadRequest, ProviderError, ServerUnavailable
from SimpleLLMFunc.tools import ModelRetry
from tests.support.server import Answer, LoopbackServer, json_answer

NOW = datetime(2026, 11, 25, 17, 30, tzinfo=UTC)  # in Beijing it is the 26th already


def place(name="北京", **more):
    return {
        "id": 1816670, "name": name, "latitude": 39.9075, "longitude": 116.39723, "country_code": "CN",
        "timezone": "Asia/Shanghai", "population": 18960744, "country": "中国", "admin1": "北京市", **more,
    }  # fmt: skip


def found(*places):
    return {"results": list(places), "generationtime_ms": 0.7} if places else {"generationtime_ms": 0.3}


def forecast(offset=28800, first=date(2026, 11, 19), count=23, empty_from=99, **more):
    numbers = range(count)

    def values(value):
        return [value(number) if number < empty_from else None for number in numbers]

    return {
        "utc_offset_seconds": offset,
        "daily": {
            "time": [(first + timedelta(number)).isoformat() for number in numbers],
            "weather_code": values(lambda number: 61 if number == 8 else 0),
            "temperature_2m_max": values(lambda number: 10.0 + number),
            "temperature_2m_min": values(lambda number: 1.5 + number), "precipitation_sum": values(lambda _: 2.1),
            "precipitation_probability_max": values(lambda _: 75), "wind_speed_10m_max": values(lambda _: 15.3),
        },
        **more,
    }  # fmt: skip


class Service:
    """A loopback Open-Meteo: each of the two addresses answers what it was given."""

    def __init__(self, places, weather=None):
        self.places = places
        self.weather = forecast() if weather is None else weather

    async def __aenter__(self):
        self.server = await LoopbackServer(self.answer).__aenter__()
        return self

    async def __aexit__(self, *error):
        await self.server.__aexit__(*error)

    def answer(self, request):
        answer = self.places if request.path.startswith("/v1/search") else self.weather
        answer = answer(request) if callable(answer) else answer
        return answer if isinstance(answer, Answer) else json_answer(answer)

    def tool(self, language="zh", **options):
        base = self.server.base_url
        service = OpenMeteo(f"{base}/search", f"{base}/forecast", **{"now": lambda: NOW, **options})
        (tool,) = weather_tools(language=language, service=service)
        return tool

    @property
    def asked(self):
        return [parse_qs(urlsplit(request.path).query) for request in self.server.requests]


async def test_today_where_the_place_is():
    async with Service(found(place())) as service:
        said = await service.tool()("北京")
    assert said.splitlines() == [
        "北京, 北京市, 中国 的天气（当地日期）：", "2026-11-26 (周四, 今天): 晴，气温 8.5～17 °C，降水概率 75%，降水量 2.1 毫米，最大风速 15.3 公里/小时",
        "数据来源：Open-Meteo。",
    ]  # fmt: skip
    geocoding, weather = service.asked
    assert geocoding["name"] == ["北京"]
    assert geocoding["language"] == ["zh"]
    assert weather["latitude"] == ["39.9075"]
    assert weather["timezone"] == ["auto"]
    assert "weather_code" in weather["daily"][0]


@pytest.mark.parametrize(
    ("said", "language"), [("明天", "zh"), ("tomorrow", "zh"), ("Friday", "en"), ("2026-11-27", "en")]
)
async def test_the_days_word_is_relative_to_the_place(said, language):
    async with Service(found(place())) as service:
        told = await service.tool(language)("北京", said)
    assert "2026-11-27" in told
    assert ("小雨" if language == "zh" else "light rain") in told


@pytest.mark.parametrize(
    ("said", "first", "count"),
    [("", "2026-11-25", 1), ("周六", "2026-11-28", 1), ("3天后", "2026-11-28", 1), ("2026-11-30", "2026-11-30", 1),
     ("tomorrow morning", "2026-11-26", 1), ("周末", "2026-11-28", 2), ("next week", "2026-11-30", 7), ("未来15天", "2026-11-26", 15)],
)  # fmt: skip
def test_days_as_people_say_them(said, first, count):
    start = date.fromisoformat(first)
    assert read_days(said, date(2026, 11, 25)) == [start + timedelta(number) for number in range(count)]


@pytest.mark.parametrize("said", ["someday", "2026", "2026-13-01", "明天或后天", "9" * 10**6, "未来17天"])
def test_what_names_no_day(said):
    with pytest.raises(ValueError, match="names no day") as caught:
        read_days(said, date(2026, 11, 25))
    assert len(str(caught.value)) < 100


async def test_several_days_and_those_without_data_are_named():
    async with Service(found(place()), forecast(empty_from=10)) as service:
        told = await service.tool()("北京", "未来四天")
    shown = [line[:10] for line in told.splitlines() if line.startswith("2026")]
    assert shown == ["2026-11-27", "2026-11-28"]
    assert "没有这些日期的数据：2026-11-29, 2026-11-30" in told


async def test_an_ending_that_the_list_does_not_know_is_left_off():
    def answer(request):
        return found(place()) if parse_qs(urlsplit(request.path).query)["name"] == ["北京"] else found()

    async with Service(answer) as service:
        assert "北京" in await service.tool()("北京市")
        assert [asked["name"] for asked in service.asked[:2]] == [["北京市"], ["北京"]]


@pytest.mark.parametrize("city", ["Xyzzyville", "北京" * 500, "  ", "a\x00b", ", France"])
async def test_an_unknown_city_tells_the_model_so(city):
    async with Service(found()) as service:
        with pytest.raises(ModelRetry, match="There is no place called") as caught:
            await service.tool("en")(city)
    assert len(str(caught.value)) < 300


USA = {"country": "United States", "country_code": "US"}
SPRINGFIELDS = (
    place("Springfield", admin1="Missouri", **USA),
    place("Springfield", admin1="Massachusetts", **USA),
    place("Springfield", admin1="Oregon", **USA),
    place("Springfield", admin1="Ontario", country="Canada", country_code="CA"),
)


@pytest.mark.parametrize(("city", "region"), [
    ("Springfield, Massachusetts", "Massachusetts"), ("Springfield，Oregon", "Oregon"),
    ("Springfield (Ontario)", "Ontario"), ("Springfield, Massachusetts, US", "Massachusetts"),
    ("Springfield, canada", "Ontario"),
])  # fmt: skip
async def test_a_region_chooses(city, region):
    async with Service(found(*SPRINGFIELDS)) as service:
        told = await service.tool("en")(city, "tomorrow")
    assert told.startswith(f"Weather in Springfield, {region}")


async def test_a_region_where_there_is_none_of_the_name_is_no_guess():
    async with Service(found(*SPRINGFIELDS)) as service:
        with pytest.raises(ModelRetry, match="Springfield, Missouri, United States; ") as caught:
            await service.tool("en")("Springfield, Narnia")
        assert len(service.server.requests) == 1
    assert "no 'Springfield, Narnia'" in str(caught.value)


async def test_a_day_out_of_reach_tells_what_there_is():
    async with Service(found(place())) as service:
        with pytest.raises(ModelRetry, match=r"2027-01-15.*2026-11-19.*2026-12-11"):
            await service.tool()("北京", "2027-01-15")
        with pytest.raises(ModelRetry, match="看不懂日期"):
            await service.tool()("北京", "某天")


async def test_an_unknown_code_and_missing_values_do_no_harm():
    weather = forecast()
    weather["daily"]["weather_code"] = [123] * 23
    weather["daily"]["precipitation_sum"] = []
    weather["daily"]["temperature_2m_max"] = [None] * 23
    del weather["daily"]["wind_speed_10m_max"]
    async with Service(found(place()), weather) as service:
        told = await service.tool()("北京")
    assert "2026-11-26 (周四, 今天): 天气代码 123，降水概率 75%" in told


@pytest.mark.parametrize(("places", "weather", "kind"), [
    (json_answer({"error": True, "reason": "Value of parameter name is invalid"}, status=400), None, BadRequest),
    (found(place()), json_answer({"error": True, "reason": "Cannot initialize"}, status=400), BadRequest),
    (Answer(500, body=b""), None, ServerUnavailable), (Answer(200, body=b"<html>"), None, ProviderError),
    ([], None, ProviderError), ({"results": {"a": 1}}, None, ProviderError),
    ({"results": [{"name": "x"}]}, None, ProviderError), ({"results": [place(latitude=1e9)]}, None, ProviderError),
    (found(place()), {}, ProviderError),
    (found(place()), {"utc_offset_seconds": 0, "daily": {"time": ["never"]}}, ProviderError),
    (found(place()), forecast(offset=10**12), ProviderError),
])  # fmt: skip
async def test_a_failing_service_is_our_error(places, weather, kind):
    async with Service(places, weather) as service:
        with pytest.raises(kind, match="Open-Meteo"):
            await service.tool()("北京")
