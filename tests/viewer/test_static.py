"""The files of the page: complete, in both languages, and none of them makes markup of data or asks another address."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import SimpleLLMFunc.viewer
from tests.viewer.served import LOOPBACK, app_of

STATIC = Path(SimpleLLMFunc.viewer.__file__).parent / "static"
SCRIPTS = sorted(path.name for path in STATIC.glob("*.js"))
WORDS = {name: json.loads((STATIC / "lang" / f"{name}.json").read_text(encoding="utf-8")) for name in ("en", "zh")}


def source(name):
    text = (STATIC / name).read_text(encoding="utf-8")
    return re.sub(r"//.*", "", text)


def test_both_languages_say_the_same_things_each_in_its_words():
    assert WORDS["en"].keys() == WORDS["zh"].keys()
    for key, text in WORDS["en"].items():
        fields = [set(re.findall(r"\{\w+\}", each)) for each in (text, WORDS["zh"][key])]
        assert fields[0] == fields[1], key
        assert text.strip(), key
        assert WORDS["zh"][key].strip(), key
    same = {key for key, text in WORDS["zh"].items() if not re.search(r"[\u4e00-\u9fff]", text)}
    assert same <= {"view.json", "column.p90", "column.p99"}


def test_one_of_a_thing_is_no_plural():
    plural = re.compile(r"\{(\w+)\} (?:more )?(?:\w+s\b|\{(\w+):(\w+)\|(\w+)\})")
    found = [(key, match) for key, text in WORDS["en"].items() for match in plural.finditer(text)]
    assert len(found) > 10
    for key, match in found:
        if key != "fall.tokens":  # a sum: so many read, and so many written
            assert match[1] == match[2], key
            assert match[3] != match[4]


def test_every_word_that_is_shown_is_in_the_tables():
    used, families = set(), set()
    for name in SCRIPTS:
        text = source(name)
        used |= set(re.findall(r"""\bt\(\s*"([^"]+)"\s*[,)]""", text))
        families |= set(re.findall(r"""\bt\("([a-z.]+\.)" \+""", text))
        for pair in re.findall(r"""\bt\([^()]*\? "([^"]+)" : "([^"]+)"\)""", text):
            used |= set(pair)
    assert len(used) > 100
    assert used <= WORDS["en"].keys(), used - WORDS["en"].keys()
    for family in families:
        assert any(key.startswith(family) for key in WORDS["en"]), family
    loose = re.findall(r'"((?:column|fact|keys|chart|maps|part)\.[a-z0-9.]+)"', "".join(map(source, SCRIPTS)))
    assert set(loose) <= WORDS["en"].keys()


def test_no_word_stands_in_the_code_itself():
    # What a person reads comes from the tables: no text child that is a sentence.
    for name in SCRIPTS:
        for text in re.findall(r'h\("[^"]+", "([^"]+)"', source(name)):
            known = r"[^A-Za-z]*|Ctrl|Enter|[a-z_.]+=.*|simplellmfunc .*|SIMPLELLMFUNC_TRACE.*"
            assert re.fullmatch(known, text), (name, text)


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_is_never_markup(name):
    text = source(name)
    ways = "innerHTML outerHTML insertAdjacentHTML document.write DOMParser createContextualFragment srcdoc eval("
    more = "setHTML parseFromString javascript: importScripts __proto__"
    for way in [*ways.split(), *more.split(), "new Function"]:
        allowed = {"srcdoc": {"dom.js"}}.get(way, set())
        assert way not in text or name in allowed, way
    assert not re.search(r"""setTimeout\(\s*["'`]|setInterval\(\s*["'`]""", text)
    assert not re.search(r"""setAttribute\(\s*["'](?:on|style|src)""", text)


def test_links_lead_to_places_on_the_page_only():
    for name in SCRIPTS:
        text = source(name)
        if name != "dom.js":
            assert "href" not in text, name
            assert "location.href" not in text
            assert "window.open" not in text
    dom = source("dom.js")
    assert dom.count('"href"') == 2, "in the list of addresses, and set to a place behind #"
    assert 'setAttribute("href", "#" + value)' in dom


def test_the_page_holds_nothing_inline_and_names_files_that_are_there():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert "<style" not in page
    assert not re.search(r"\s(?:on\w+|style)=", page)
    for address in re.findall(r"""(?:src|href)="([^"]+)\"""", page):
        assert (STATIC / address).is_file(), address
    for name in SCRIPTS:
        for imported in re.findall(r'from "\./([^"]+)"', source(name)):
            assert imported in SCRIPTS, (name, imported)


def test_no_file_asks_another_address():
    for path in STATIC.rglob("*"):
        if path.suffix not in {".js", ".css", ".html", ".json", ".svg"} or path.parent.name == "vendor":
            continue
        found = set(re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8")))
        assert found <= {"http://www.w3.org/2000/svg"}, (path.name, found)
        assert "@import" not in path.read_text(encoding="utf-8")
    # The chart library does not ask for anything either: its only addresses are in its first comment.
    chart = (STATIC / "vendor" / "uPlot.iife.min.js").read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\s\"'`)]+", chart) == ["https://github.com/leeoniya/uPlot"]
    for way in ("innerHTML", "fetch(", "XMLHttpRequest", "eval(", "new Function", "WebSocket"):
        assert way not in chart


def test_the_chart_library_is_as_it_was_published_with_its_licence():
    vendor = STATIC / "vendor"
    digest = hashlib.sha256((vendor / "uPlot.iife.min.js").read_bytes()).hexdigest()
    assert digest == UPLOT_SHA256, "uPlot 1.6.32, dist/uPlot.iife.min.js of its npm package"
    assert "The MIT License" in (vendor / "uPlot.LICENSE.txt").read_text(encoding="utf-8")


UPLOT_SHA256 = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"


def test_files_are_served_with_their_type_and_asked_about_again(store):
    client = TestClient(app_of(store), base_url=LOOPBACK)
    for name, kind in (("app.js", "text/javascript"), ("page.css", "text/css"), ("lang/zh.json", "application/json"), ("icon.svg", "image/svg+xml"), ("vendor/uPlot.iife.min.js", "text/javascript"), ("", "text/html")):  # fmt: skip
        reply = client.get(f"/{name}")
        assert reply.status_code == 200, name
        assert reply.headers["content-type"].startswith(kind)
        again = client.get(f"/{name}", headers={"if-none-match": reply.headers["etag"]})
        assert again.status_code == 304
        assert again.headers["cache-control"] == "no-cache"
