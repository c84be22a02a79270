"""The weather of a place on a day, from Open-Meteo: no key, city names and days in Chinese and English."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from SimpleLLMFunc.assistant.words import WORDS, Language, localized
from SimpleLLMFunc.calls.slot.time_words import Calendar
from SimpleLLMFunc.errors import ProviderError, cut
from SimpleLLMFunc.interface.attempts import get_json
from SimpleLLMFunc.tools import ModelRetry, Tool

M = TypeVar("M", bound=BaseModel)

_WORDS: Final[dict[str, dict[str, str]]] = WORDS["weather"]
_SERVICE = "Open-Meteo"
_FORECAST_DAYS = 16
_PARAMETERS: Final[dict[str, str | int | float]] = {
    "daily": "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,precipitation_probability_max,"
    "wind_speed_10m_max",
    "timezone": "auto",
    "past_days": 7,
    "forecast_days": _FORECAST_DAYS,
}
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_SEPARATORS = re.compile("[,，、/(（]")
_MOST_CANDIDATES = 5


# --- what the service says -----------------------------------------------------------------------------------


class Place(BaseModel):
    """A place that the geocoding found."""

    name: str
    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)
    country: str = ""
    country_code: str = ""
    admin1: str = ""

    def lies_in(self, region: str) -> bool:
        """Tell whether its region or country has this name, or begins with it."""
        names = (self.admin1, self.country, self.country_code)
        return any(name.casefold().startswith(region.casefold()) for name in names)

    @property
    def shown(self) -> str:
        """The name, with region and country."""
        return ", ".join(dict.fromkeys(part for part in (self.name, self.admin1, self.country) if part))


class _Found(BaseModel):
    results: list[Place] = []


class Day(BaseModel):
    """One day's weather; what the service did not say is None. Celsius, millimetres, per cent, km/h."""

    time: date
    weather_code: int | None = None
    temperature_2m_min: float | None = None
    temperature_2m_max: float | None = None
    precipitation_sum: float | None = None
    precipitation_probability_max: float | None = None
    wind_speed_10m_max: float | None = None


class _Forecast(BaseModel):
    utc_offset_seconds: int = Field(ge=-86400, le=86400)
    daily: dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class OpenMeteo:
    """Asks Open-Meteo.

    Attributes:
        geocoding_url: where names of places are looked up.
        forecast_url: where the weather is asked for.
        timeout: seconds for each of the two requests.
        now: the present moment, for tests.
    """

    geocoding_url: str = "https://geocoding-api.open-meteo.com/v1/search"
    forecast_url: str = "https://api.open-meteo.com/v1/forecast"
    timeout: float = 10.0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def places(self, name: str) -> tuple[list[Place], list[Place]]:
        """Return the places of a name, the most important first: those that are meant, and all that were found.

        Those that are meant lie in the region or country that stands behind a comma ("Paris, Texas").

        Raises:
            ProviderError: the service failed, or its reply cannot be read.
        """
        city, *regions = [part.strip(" )）") for part in _SEPARATORS.split(name[:100])]
        for spelling in dict.fromkeys((city, city.removesuffix("市"))):
            if not spelling:
                continue
            # Names in Chinese letters are found in the Chinese list of names.
            language = "zh" if _HAN.search(spelling) else "en"
            wanted = {"name": spelling, "count": 10, "language": language, "format": "json"}
            if found := (await self._asked(_Found, self.geocoding_url, wanted)).results:
                return [place for place in found if all(map(place.lies_in, regions))], found
        return [], []

    async def weather(self, place: Place) -> tuple[date, dict[date, Day]]:
        """Return the date in a place, and its weather by day: from a week ago to a fortnight ahead.

        Raises:
            ProviderError: the service failed, or its reply cannot be read.
        """
        where = {"latitude": place.latitude, "longitude": place.longitude}
        forecast = await self._asked(_Forecast, self.forecast_url, {**_PARAMETERS, **where})
        today = (self.now().astimezone(UTC) + timedelta(seconds=forecast.utc_offset_seconds)).date()
        return today, {day.time: day for day in _days(forecast.daily)}

    async def _asked(self, kind: type[M], url: str, parameters: Mapping[str, str | int | float]) -> M:
        return _read(kind, await get_json(url, parameters, service=_SERVICE, timeout=self.timeout))


def _read(kind: type[M], data: Any) -> M:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise ProviderError(
            f"the reply has not the shape of Open-Meteo's ({where or 'its outside'}: {error.errors()[0]['msg']}).",
            model=_SERVICE,
        ) from None


def _days(daily: Mapping[str, list[Any]]) -> Iterator[Day]:
    for number in range(len(daily.get("time", ()))):
        day = _read(Day, {name: values[number] for name, values in daily.items() if number < len(values)})
        if {day.weather_code, day.temperature_2m_min, day.temperature_2m_max} != {None}:
            yield day  # the far end of the forecast is often empty


def read_days(text: str, today: date) -> list[date]:
    """Return the days that a text means, in order; no text means today.

    Raises:
        ValueError: it names no day, or more days than a forecast has.
    """
    span = Calendar("UTC", datetime.combine(today, time())).read(text.strip() or "today")
    if span is not None:
        first, last = span.start.date(), span.last.date()
        if (last - first).days < _FORECAST_DAYS:
            return [first + timedelta(number) for number in range((last - first).days + 1)]
    raise ValueError(f"{text[:60]!r} names no day")


# --- as a tool -----------------------------------------------------------------------------------------------


def weather_tools(*, language: Language = "zh", service: OpenMeteo = OpenMeteo()) -> list[Tool]:
    """Return the tool `get_weather`.

    Args:
        language: of the description, and of what the tool says.
        service: who is asked.
    """
    words = _WORDS[language]

    async def get_weather(city: str, date: str = "") -> str:
        """Look up the weather of a city on a day.

        Args:
            city: Its name, in Chinese or English; where there are several, with the region or country behind a comma,
                such as "Paris, Texas".
            date: Which day: today, tomorrow, Saturday, next Monday, in 3 days, 2026-11-25 …; today if left out. There
                are data from a week ago to two weeks ahead.
        """
        fitting, found = await service.places(city)
        if not found:
            raise ModelRetry(words["no place"].format(city=cut(city, 60)))
        if not fitting:
            listed = "; ".join(place.shown for place in found[:_MOST_CANDIDATES])
            raise ModelRetry(words["no such place"].format(city=cut(city, 60), places=listed))
        today, known = await service.weather(fitting[0])
        try:
            days = read_days(date, today)
        except ValueError:
            raise ModelRetry(words["no day"].format(date=cut(date, 60))) from None
        if not any(day in known for day in days):
            reach = {"first": min(known, default="-"), "last": max(known, default="-")}
            raise ModelRetry(words["no data"].format(days=", ".join(map(str, days)), **reach))
        lines = [words["place"].format(place=fitting[0].shown)]
        lines += [_line(known[day], today, language) for day in days if day in known]
        if missing := [str(day) for day in days if day not in known]:
            lines.append(words["missing"].format(days=", ".join(missing)))
        return "\n".join([*lines, words["source"]])

    return [localized(get_weather, language, timeout=3 * service.timeout)]


def _line(day: Day, today: date, language: Language) -> str:
    words = _WORDS[language]
    relative = words.get(f"day {(day.time - today).days}", "")
    name = ", ".join(part for part in (WORDS["weekdays"][language][day.time.weekday()], relative) if part)
    facts = []
    if day.weather_code is not None:
        named = WORDS["conditions"].get(str(day.weather_code), {})  # as in the WMO's code table 4677
        facts.append(named.get(language) or words["code"].format(code=day.weather_code))
    if day.temperature_2m_min is not None and day.temperature_2m_max is not None:
        facts.append(words["range"].format(low=day.temperature_2m_min, high=day.temperature_2m_max))
    measured = {
        "rain probability": day.precipitation_probability_max,
        "rain": day.precipitation_sum,
        "strongest wind": day.wind_speed_10m_max,
    }
    facts += [words[each].format(value=value) for each, value in measured.items() if value is not None]
    return f"{day.time.isoformat()} ({name}): " + words["and"].join(facts)
