"""The page in a real browser: found, read, compared, run, talked to, by hand and by key, on a phone and in the dark."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import spec_name
from tests.support.wires import MODELS, wired
from tests.viewer import shop
from tests.viewer.served import PHONE, Served, Visit, app_of, clipboard, in_thread, until

OWN_TOOLS = {
    "responses": [{"type": "web_search"}],
    "messages": [{"type": "web_search_20250305", "name": "web_search"}],
    "gemini": [{"googleSearch": {}}],
}


def stock(item: str) -> str:
    """Tell how many there are."""
    return "7 on the shelf"


pytestmark = [pytest.mark.heavy, pytest.mark.timeout(120)]

# --- the token ---


def test_the_token_leaves_the_address_and_lasts_for_a_reload(browser, served):
    with Visit(browser, served.address) as visit:
        assert "token" not in visit.tab.url
        visit.tab.wait_for_selector("tbody tr")
        visit.tab.reload()
        visit.tab.wait_for_selector("tbody tr")
        assert visit.context.cookies() == []
        assert "token" not in visit.tab.evaluate("JSON.stringify(history.state) + document.referrer + document.cookie")


def test_without_the_token_the_page_says_what_to_do(browser, served):
    with Visit(browser, served.address.partition("#")[0]) as visit:
        assert "needs its token" in visit.tab.inner_text("main")
        assert "read_order" not in visit.tab.content()


def test_mounted_in_an_application_it_is_the_same_page(browser, filled):
    page = app_of(filled, allow_run=[shop.mood])
    outside = Starlette(routes=[Route("/", lambda _request: PlainTextResponse("mine")), Mount("/llm", page)])
    outside.fragment = page.fragment
    with Served(outside) as served:
        base = served.address.partition("#")[0]
        with Visit(browser, f"{base}llm{page.fragment}") as visit:
            tab = visit.tab
            tab.wait_for_selector("tbody tr")
            assert tab.url.startswith(f"{base}llm/")
            tab.goto(f"{base}llm/#/play/mood")
            tab.wait_for_selector("form")
            tab.fill("#field-text", "Hm.")
            tab.click("button.first")
            tab.wait_for_selector("text=Open the run")
            assert visit.problems == []


def test_a_server_that_has_gone_is_said(browser, filled):
    with Served(app_of(filled)) as page:
        visit = Visit(browser, page.address)
        visit.tab.wait_for_selector("tbody tr")
    visit.tab.click("text=Functions")
    visit.tab.wait_for_selector(".empty")
    assert "does not answer" in visit.tab.inner_text("main")
    visit.context.close()


# --- the list ---


def test_runs_are_searched_filtered_and_the_address_keeps_it(visit):
    tab = visit.go("/runs", "tbody tr")
    assert tab.locator("tbody tr").count() == 6
    tab.select_option("select[aria-label=Function]", "mood")
    until(tab, "document.querySelectorAll('tbody tr').length === 2")
    assert "function=mood" in tab.url
    tab.fill("input[type=search]", "谢谢")
    until(tab, "document.querySelectorAll('tbody tr').length === 1")
    tab.reload()
    tab.wait_for_selector("tbody tr")
    assert tab.locator("tbody tr").count() == 1
    assert tab.input_value("input[type=search]") == "谢谢"
    tab.fill("input[type=search]", "nowhere to be found")
    tab.wait_for_selector("text=No run fits")


def test_new_runs_show_up_by_themselves(visit, filled):
    tab = visit.go("/runs", "tbody tr")

    def ask():
        with watching(filled):
            shop.mood("a brand new run")

    in_thread(ask)
    until(tab, "document.querySelectorAll('tbody tr').length === 7")
    assert "mood" in tab.inner_text("tbody tr:first-child")


def test_who_reads_is_not_moved_by_new_runs(visit, filled):
    tab = visit.go("/runs", "tbody tr")
    tab.keyboard.press("j")
    before = tab.inner_text("tbody")

    def ask():
        with watching(filled):
            shop.mood("a brand new run")

    in_thread(ask)
    tab.wait_for_selector("text=New runs: show them")
    assert tab.inner_text("tbody") == before
    tab.click("text=New runs: show them")
    until(tab, "document.querySelectorAll('tbody tr').length === 7")


def test_a_run_that_goes_on_is_followed_to_its_end(visit, filled):
    go_on = threading.Event()

    def reply(_request):
        async def wait():
            while not go_on.is_set():
                await asyncio.sleep(0.01)
            return "It holds a litre."

        return wait()

    def ask():
        with watching(filled):
            return asyncio.run(shop.describe.with_options(llm_interface=ScriptedLLM(reply))("teapot"))

    worker = threading.Thread(target=ask)
    worker.start()
    tab = visit.go("/runs", ".badge.running")
    tab.click("tbody tr:first-child a")
    tab.wait_for_selector("h1 .badge.running")
    assert "Not there yet" in tab.inner_text("main")
    go_on.set()
    tab.wait_for_selector("h1 .badge.ok")
    assert "It holds a litre." in tab.inner_text("main")
    worker.join(20)


def test_ten_thousand_runs_are_paged(browser, tmp_path):
    store = TraceStore(tmp_path / "runs.sqlite", interval=0.01)
    in_thread(lambda: _one_run(store))
    store.flush()
    with sqlite3.connect(store.path) as connection:
        columns = [
            row[1]
            for row in connection.execute("PRAGMA table_info(runs)")
            if row[1] not in {"id", "seq", "trace_id", "started"}
        ]
        names = ", ".join(columns)
        connection.execute(
            f"WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
            f"INSERT INTO runs (id, seq, trace_id, started, {names}) SELECT i, i + 100000, 'run_' || i, started + i, {names} FROM runs, n WHERE id = 1"
        )
        connection.execute("UPDATE counter SET seq = 200000")
    connection.close()
    with Served(app_of(store)) as page, Visit(browser, page.address) as visit:
        tab = visit.go("/runs", "tbody tr")
        assert "1 – 50 of 10,000" in tab.inner_text(".pager")
        assert tab.locator("tbody tr").count() == 50
        for number in range(2, 6):
            tab.keyboard.press("n")
            tab.wait_for_selector(f"text={number * 50 - 49} – {number * 50} of")
            assert tab.locator("tbody tr").count() == 50
        tab.keyboard.press("p")
        tab.wait_for_selector("text=151 – 200 of")
        assert tab.evaluate("document.querySelectorAll('*').length") < 2500
        assert visit.problems == []
    store.close()


def _one_run(store):
    with watching(store):
        shop.mood("x")


# --- one run ---


def test_a_run_is_shown_with_its_time_axis_and_its_mending(visit, filled):
    run = next(each for each in filled.reader.runs().runs if each.failed_tries)
    tab = visit.go(f"/run/{run.id}", ".fall .row")
    labels = [row.inner_text() for row in tab.locator(".fall .label").all()]
    assert labels == ["Request 1", "failed: 429", "waiting", "stock", "stock", "Request 2, sent back", "Request 3"]
    boxes = [bar.bounding_box() for bar in tab.locator(".fall .bar").all()]
    assert boxes[5]["x"] >= boxes[0]["x"] + boxes[0]["width"] - 1, "one request after the other"
    assert boxes[6]["x"] >= boxes[5]["x"] + boxes[5]["width"] - 1
    text = tab.inner_text("main")
    assert "number taken from '24.50 EUR'" in text
    assert "expected float, got 'a lot'" in text
    assert "7 on the shelf" in text
    assert shop.LETTER in text
    assert "1,521 + 193" in text
    tab.locator("#turn-2 .tabs button").nth(1).click()
    raw = tab.locator("#turn-2 .code").first.inner_text()
    assert json.loads(raw)["model"] == "gpt-5-mini"
    tab.locator("#turn-2 .tabs button").nth(0).click()
    assert "5 messages as before" in tab.inner_text("#turn-3")


def test_a_request_is_shown_as_messages_on_each_wire(browser, tmp_path):
    async def asked(store, name):
        said = {"calls": [("stock", {"item": "pens"})], "thinking": "Let me look."}
        async with wired(name, said, {"texts": ['{"left": 7}'], "thinking": "So."}) as (llm, _):

            @llm_function(llm, toolkit=[stock, *OWN_TOOLS[name]])
            async def left(text: str) -> dict[str, int]:
                """Count what is left."""
                raise NotImplementedError

            with watching(store):
                assert await left("How many <b>pens</b>?") == {"left": 7}

    with TraceStore(tmp_path / "wires.sqlite", interval=0.01) as store:
        for name in OWN_TOOLS:
            in_thread(lambda name=name: asyncio.run(asked(store, name)))
        assert store.flush()
        runs = {run.model: run.id for run in store.reader.runs().runs}
        with Served(app_of(store)) as served, Visit(browser, served.address) as visit:
            for name, own in OWN_TOOLS.items():
                tab = visit.go(f"/run/{runs[MODELS[name]]}", "#turn-2 .message.tool")
                first = tab.locator("#turn-1 .sides > div").first
                assert [each.get_attribute("class") for each in first.locator(".message").all()] == [
                    "message system",
                    "message user",
                ]
                assert "How many <b>pens</b>?" in first.inner_text()
                assert first.locator(".tag.tool").all_inner_texts() == ["stock", *map(spec_name, own)]
                second = tab.locator("#turn-2 .sides > div").first
                second.locator("details").first.evaluate("each => each.open = true")
                kinds = [each.get_attribute("class").split()[1] for each in second.locator(".message").all()]
                assert [kind for kind in kinds if kind != "assistant"] == ["system", "user", "tool"]
                assert kinds[2] == "assistant"
                text = second.inner_text()
                assert 'stock({ "item": "pens" })' in text.replace("\xa0", " ")
                assert "7 on the shelf" in text
            assert visit.problems == []


def test_a_run_is_copied_as_curl_and_as_a_test_that_passes(visit, filled, tmp_path):
    run = next(each for each in filled.reader.runs().runs if each.failed_tries)
    tab = visit.go(f"/run/{run.id}", ".fall .row")
    tab.locator("#turn-1").get_by_text("Copy as curl").click()
    tab.wait_for_selector("text=Copied")
    assert clipboard(tab).startswith("curl http://127.0.0.1:")
    tab.evaluate("navigator.clipboard.writeText('')")
    tab.keyboard.press("c")
    until(tab, "navigator.clipboard.readText().then((text) => text.includes('def test_read_order'))")
    (tmp_path / "test_copied.py").write_text(clipboard(tab))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", "--noconftest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path / "test_copied.py")],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_runs_with_the_same_answer_are_told_apart_by_what_was_asked(visit, filled):
    def ask():
        with watching(filled):
            shop.mood("The first letter.")
            shop.mood("The second letter.")

    in_thread(ask)
    assert filled.flush()
    tab = visit.go("/runs", "tbody tr")
    shown = [line.inner_text() for line in tab.locator("tbody tr .asked").all()[:2]]
    assert shown == ["text=The second letter., scale=3", "text=The first letter., scale=3"]


@pytest.mark.parametrize("place", ["/run/999999", "/nowhere", "/%", "/run/%E0%A4%A"])
def test_a_place_that_is_not_there(visit, place):
    tab = visit.go("/runs", "tbody tr")
    tab = visit.go(place, ".empty")
    said = tab.inner_text("main")
    assert "There is no such run" in said or "There is no place" in said or "malformed" in said
    assert tab.title() != "Runs · SimpleLLMFunc"
    visit.problems = [problem for problem in visit.problems if "404" not in problem]
    visit.problems = [problem for problem in visit.problems if "404" not in problem]


# --- functions ---


def test_versions_stand_side_by_side_with_charts(visit):
    tab = visit.go("/functions", "tbody tr")
    tab.click("text=read_order")
    tab.wait_for_selector(".diff")
    assert tab.locator(".versions .list li").count() == 3
    assert tab.locator(".chart canvas").count() == 4
    drawn = tab.evaluate(
        "[...document.querySelectorAll('.chart canvas')].map((c) => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size)"
    )
    assert all(colours > 10 for colours in drawn), "something is drawn in each"
    added = " ".join(tab.locator(".diff td.add").all_inner_texts())
    removed = " ".join(tab.locator(".diff td.del").all_inner_texts())
    assert "Look up every item before you note it." in added
    assert "Prices are in euros." in removed
    assert '"name": "stock"' in added
    assert tab.locator(".diff mark").count() > 0
    tab.locator(".versions .list button").nth(1).click()
    assert "Prices are in euros." in " ".join(tab.locator(".diff td.add").all_inner_texts())
    canvas = tab.locator(".chart .u-over").first
    canvas.hover()
    tab.wait_for_selector(".tip:not([hidden])")
    assert re.search(r"[0-9a-f]{8}: [\d,]+", tab.locator(".tip:not([hidden])").inner_text())


# --- playground and chat ---


def test_a_function_is_run_with_edited_arguments_and_compared(visit, filled):
    run = next(each for each in filled.reader.runs().runs if each.failed_tries)
    tab = visit.go(f"/run/{run.id}", ".fall .row")
    tab.click("text=Run again")
    tab.wait_for_selector("form")
    assert tab.input_value("#field-letter") == shop.LETTER
    assert tab.input_value("#field-language") == "English"
    tab.fill("#field-letter", "Another letter altogether.")
    tab.focus("#field-language")
    tab.keyboard.press("Control+Enter")
    tab.wait_for_selector("text=Compared")
    text = tab.inner_text("main")
    assert f"Earlier answer (run {run.id})" in text
    assert "the same" in text
    assert "sent back" in text
    tab.click("text=Open the run")
    tab.wait_for_selector(".fall .row")
    assert "Another letter altogether." in tab.inner_text("main")


def test_the_form_follows_the_types_and_says_what_is_wrong(visit):
    tab = visit.go("/play/mood", "form")
    tab.fill("#field-text", "Hm.")
    tab.fill("#field-scale", "three")
    tab.click("button.first")
    assert tab.inner_text("#field-scale-wrong") == "A whole number."
    tab.fill("#field-scale", "")
    tab.click("text=Preview")
    tab.wait_for_selector("text=What would be sent")
    assert "Hm." in tab.inner_text("main")
    tab.fill("#field-scale", "5")
    tab.click("button.first")
    tab.wait_for_selector("text=Open the run")
    assert '"happy"' in tab.inner_text("main")


def test_a_stream_is_watched_and_stopped(browser, filled):
    begun, go_on = threading.Event(), threading.Event()

    def reply(_request):
        async def wait():
            begun.set()
            while not go_on.is_set():
                await asyncio.sleep(0.01)
            return "never read"

        return wait()

    slow = shop.describe.with_options(llm_interface=ScriptedLLM(reply))
    with Served(app_of(filled, allow_run=[slow])) as page, Visit(browser, page.address) as visit:
        tab = visit.go("/play/describe", "form")
        tab.fill("#field-item", "teapot")
        tab.click("button.first")
        tab.wait_for_selector(".badge.running")
        assert begun.wait(10)
        tab.click("text=Stop")
        tab.wait_for_selector("text=Stopped.")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            assert filled.flush()
            if filled.reader.runs().runs[0].status == "cancelled":
                break
        assert filled.reader.runs().runs[0].status == "cancelled"
        assert visit.problems == []
    go_on.set()


def test_a_chat_and_the_assistant_answer(visit):
    tab = visit.go("/chat", ".pick")
    tab.click("text=clerk")
    tab.wait_for_selector(".talk")
    tab.fill(".say textarea", "When do you open?")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".bubble:has-text('Answer number 1')")
    tab.wait_for_selector(".say button.first:not(:disabled)")
    tab.fill(".say textarea", "And <b>on Sundays</b>?")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".bubble:has-text('Answer number 2')")
    assert "<b>on Sundays</b>" in tab.inner_text(".talk")
    tab.wait_for_selector(".say button.first:not(:disabled)")
    tab.click("text=New conversation")
    tab.fill(".say textarea", "Hello")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".bubble:has-text('Answer number 1')")
    tab = visit.go("/chat/helper", "h1:has-text('helper')")
    tab.fill(".say textarea", "Who are you?")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".bubble:has-text('I am the assistant of the shop.')")


def test_running_is_off_unless_it_was_allowed(browser, filled):
    with Served(app_of(filled)) as page, Visit(browser, page.address) as visit:
        for place in ("/play", "/chat", "/play/mood", "/chat/clerk"):
            tab = visit.go(place, ".empty")
            assert "--allow-run" in tab.inner_text("main")
        tab = visit.go("/run/1", "section.card")
        assert tab.locator("text=Run again").count() == 0
        assert visit.problems == []


# --- maps ---


def test_a_map_is_shown_with_its_failures_and_rows(visit):
    tab = visit.go("/maps", ".meter")
    assert re.search(r"\d+ rows with a value, \d+ failed", tab.inner_text("main"))
    tab.click("text=moods.sqlite")
    tab.wait_for_selector(".rows li")
    assert tab.locator(".rows li").count() == 50
    tab.click(".kinds a")
    until(tab, "[...document.querySelectorAll('.rows li')].every((line) => line.querySelector('.tag.bad'))")
    tab.locator(".rows summary").first.click()
    assert "letter" in tab.locator(".rows li").first.inner_text()


# --- by key, on a phone, in the dark, in Chinese ---


def test_everything_is_reached_by_key(visit):
    tab = visit.go("/runs", "tbody tr")
    tab.keyboard.press("j")
    tab.keyboard.press("j")
    tab.keyboard.press("k")
    assert tab.evaluate("document.activeElement.matches('tbody tr:first-child')")
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "one sees where one is"
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".fall")
    tab.keyboard.press("u")
    tab.wait_for_selector("tbody tr")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.type") == "search"
    tab.keyboard.type("j2?")
    assert tab.input_value("input[type=search]") == "j2?", "while one types, keys are letters"
    tab.keyboard.press("Escape")
    tab.keyboard.press("?")
    tab.wait_for_selector("dialog[open]")
    assert "next and previous line" in tab.inner_text("dialog")
    tab.keyboard.press("Escape")
    tab.wait_for_selector("dialog", state="detached")
    for key, heading in (("2", "Sessions"), ("3", "Functions"), ("4", "Playground"), ("5", "Chat"), ("6", "Maps")):
        tab.keyboard.press(key)
        tab.wait_for_selector(f"h1:has-text('{heading}')")
    tab.keyboard.press("1")
    tab.wait_for_selector("tbody tr")
    reached = set()
    for number in range(48):
        tab.keyboard.press("Tab" if number < 24 else "Shift+Tab")
        reached.add(tab.evaluate("document.activeElement.tagName"))
    assert {"A", "BUTTON", "INPUT", "SELECT"} <= reached


PLACES = [
    ("/sessions", "h1"), ("/compare?a=1&b=2", ".diff"), ("/reports", ".empty"),
    ("/runs", "tbody tr"), ("/run/1", ".fall"), ("/functions", "tbody tr"), ("/function/read_order", ".diff"), ("/play", ".pick"), ("/play/read_order?run=1", "form"),
    ("/chat", ".pick"), ("/chat/clerk", ".talk"), ("/maps", ".meter"), ("/map/0", ".rows"),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone_and_can_be_read(browser, served, scheme):
    with Visit(browser, served.address, **PHONE, color_scheme=scheme) as visit:
        for place, waiting in PLACES:
            tab = visit.go(place, waiting)
            wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{place} is {wide} px too wide"
            faint = tab.evaluate(CONTRAST)
            assert faint == [], place
        assert visit.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_are_chosen_and_kept(browser, served, scheme):
    with Visit(browser, served.address, color_scheme=scheme) as visit:
        tab = visit.go("/functions", "tbody tr")
        before = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        wanted = "dark" if scheme == "light" else "light"
        for _ in range(3):
            if tab.evaluate("document.documentElement.dataset.theme") == wanted:
                break
            tab.keyboard.press("t")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != before
        for place, waiting in PLACES:
            assert visit.go(place, waiting).evaluate(CONTRAST) == [], place
        tab.reload()
        tab.wait_for_selector("main:not([aria-busy])")
        assert tab.evaluate("document.documentElement.dataset.theme") == wanted


def test_it_speaks_chinese_to_who_does(browser, served):
    with Visit(browser, served.address, locale="zh-CN") as visit:
        tab = visit.go("/runs", "tbody tr")
        assert "运行" in tab.inner_text("nav")
        assert tab.evaluate("document.documentElement.lang") == "zh-CN"
        for place, waiting in PLACES:
            text = visit.go(place, waiting).inner_text("main")
            assert not re.search(r"\b[a-z]+\.[a-z]+\.[a-z]+\b|\{\w+\}", text.replace("tests.viewer.shop", "")), place
        tab.click("text=English")
        tab.wait_for_selector("nav:has-text('Runs')")
        tab.reload()
        tab.wait_for_selector("nav:has-text('Runs')")
        assert tab.evaluate("document.documentElement.lang") == "en"


CONTRAST = """() => {
    // Text against what stands behind it: 4.5 to 1, or 3 to 1 for large letters (WCAG AA).
    const parse = (colour) => { const m = colour.match(/[\\d.]+/g).map(Number); return colour.startsWith("color(") ? [...m.slice(0, 3).map((x) => x * 255), m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
    const light = ([r, g, b]) => { const f = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
    const behind = (element) => { const layers = []; for (let e = element; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) layers.push(c); if (c[3] === 1) break; }
        return layers.reverse().reduce((under, c) => under.map((x, i) => x * (1 - c[3]) + c[i] * c[3]), [255, 255, 255]); };
    const found = [];
    for (const element of document.querySelectorAll("main *, header *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || element.closest(".offscreen, canvas, :disabled, svg") || !element.getClientRects().length) continue;
        const style = getComputedStyle(element);
        const [a, b] = [light(parse(style.color)), light(behind(element))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        const isLarge = parseFloat(style.fontSize) >= 18.66;
        if (ratio < (isLarge ? 3 : 4.5)) found.push(`${element.tagName}.${element.className}: ${ratio.toFixed(2)} ${element.textContent.slice(0, 30)}`);
    }
    return [...new Set(found)].slice(0, 8);
}"""
