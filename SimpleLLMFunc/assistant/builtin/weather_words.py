"""What the weather tool says, in Chinese and English.

Source of the codes: WMO code table 4677, as Open-Meteo uses it.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CONDITIONS", "WEEKDAYS", "WORDS"]

CONDITIONS: Final = {
    0: {"zh": "晴", "en": "clear sky"},
    1: {"zh": "大部晴朗", "en": "mainly clear"},
    2: {"zh": "多云", "en": "partly cloudy"},
    3: {"zh": "阴", "en": "overcast"},
    45: {"zh": "雾", "en": "fog"},
    48: {"zh": "雾凇", "en": "rime fog"},
    51: {"zh": "轻微毛毛雨", "en": "light drizzle"},
    53: {"zh": "毛毛雨", "en": "drizzle"},
    55: {"zh": "密集毛毛雨", "en": "dense drizzle"},
    56: {"zh": "轻微冻毛毛雨", "en": "light freezing drizzle"},
    57: {"zh": "冻毛毛雨", "en": "freezing drizzle"},
    61: {"zh": "小雨", "en": "light rain"},
    63: {"zh": "中雨", "en": "rain"},
    65: {"zh": "大雨", "en": "heavy rain"},
    66: {"zh": "小冻雨", "en": "light freezing rain"},
    67: {"zh": "冻雨", "en": "freezing rain"},
    71: {"zh": "小雪", "en": "light snow"},
    73: {"zh": "中雪", "en": "snow"},
    75: {"zh": "大雪", "en": "heavy snow"},
    77: {"zh": "米雪", "en": "snow grains"},
    80: {"zh": "小阵雨", "en": "light rain showers"},
    81: {"zh": "阵雨", "en": "rain showers"},
    82: {"zh": "强阵雨", "en": "violent rain showers"},
    85: {"zh": "小阵雪", "en": "light snow showers"},
    86: {"zh": "大阵雪", "en": "heavy snow showers"},
    95: {"zh": "雷暴", "en": "thunderstorm"},
    96: {"zh": "雷暴伴小冰雹", "en": "thunderstorm with light hail"},
    99: {"zh": "雷暴伴大冰雹", "en": "thunderstorm with heavy hail"},
}

WEEKDAYS: Final = {
    "zh": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}

WORDS: Final[dict[str, dict[str, str]]] = {
    "zh": {
        "place": "{place} 的天气（当地日期）：",
        "now": "现在：{weather}",
        "and": "，",
        "degrees": "{value:g} °C",
        "feels like": "体感 {value:g} °C",
        "humidity": "湿度 {value:g}%",
        "wind": "风速 {value:g} 公里/小时",
        "range": "气温 {low:g}～{high:g} °C",
        "rain probability": "降水概率 {value:g}%",
        "rain": "降水量 {value:g} 毫米",
        "strongest wind": "最大风速 {value:g} 公里/小时",
        "code": "天气代码 {code}",
        "missing": "没有这些日期的数据：{days}。",
        "rivals": "同名的地方还有：{places}。如果要查的是其中之一，请在城市名后的逗号后写上省、州或国家。",
        "source": "数据来源：Open-Meteo。",
        "day -2": "前天",
        "day -1": "昨天",
        "day 0": "今天",
        "day 1": "明天",
        "day 2": "后天",
        "no place": "没有找到叫 {city!r} 的地方。请检查写法，或换成英文名。",
        "no such place": "没有找到 {city!r}。叫这个名字的地方有：{places}。请在逗号后写上其中一个的省、州或国家。",
        "no day": "看不懂日期 {date!r}。请写 今天、明天、后天、周六、下周一、3天后，或 2026-11-25 这样的日期。",
        "no data": "没有 {days} 的数据，只有 {first} 到 {last} 的。",
    },
    "en": {
        "place": "Weather in {place} (dates are local):",
        "now": "Now: {weather}",
        "and": ", ",
        "degrees": "{value:g} °C",
        "feels like": "feels like {value:g} °C",
        "humidity": "humidity {value:g}%",
        "wind": "wind {value:g} km/h",
        "range": "{low:g} to {high:g} °C",
        "rain probability": "chance of rain {value:g}%",
        "rain": "precipitation {value:g} mm",
        "strongest wind": "strongest wind {value:g} km/h",
        "code": "weather code {code}",
        "missing": "There are no data for: {days}.",
        "rivals": "Other places of this name: {places}. To look up one of these, write its region or country behind a comma.",
        "source": "Source: Open-Meteo.",
        "day -1": "yesterday",
        "day 0": "today",
        "day 1": "tomorrow",
        "no place": "There is no place called {city!r}. Check the spelling, or give its name in English.",
        "no such place": "There is no {city!r}. The places of this name are: {places}. Write the region or country of one "
        "of these behind a comma.",
        "no day": "{date!r} names no day. Write today, tomorrow, Saturday, next Monday, in 3 days, or a date such as "
        "2026-11-25.",
        "no data": "There are no data for {days}, only from {first} to {last}.",
    },
}
