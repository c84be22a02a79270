"""The page in a real browser: found, read, compared, run, talked to, by hand and by key, on a phone and in the dark."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.type import spec_name
from tests.support.wires import MODELS, wired
from tests.viewer import shop
from tests.viewer.served import PHONE, Served, Visit, app_of, in_thread, keep, until

OWN_TOOLS = {
    "responses": [{"type": "web_search"}], "messages": [{"type": "web_search_20250305", "name": "web_search"}],
    "gemini": [{"googleSearch": {}}],
}  # fmt: skip


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
    in_thread(lambda: keep(filled, lambda: shop.mood("a brand new run")))
    until(tab, "document.querySelectorAll('tbody tr').length === 7")
    assert "mood" in tab.inner_text("tbody tr:first-child")


def test_who_reads_is_not_moved_by_new_runs(visit, filled):
    tab = visit.go("/runs", "tbody tr")
    tab.keyboard.press("j")
    before = tab.inner_text("tbody")
    in_thread(lambda: keep(filled, lambda: shop.mood("a brand new run")))
    tab.wait_for_selector("text=New runs: show them")
    assert tab.inner_text("tbody") == before
    tab.click("text=New runs: show them")
    until(tab, "document.querySelectorAll('tbody tr').length === 7")


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
                roles = [each.get_attribute("class") for each in first.locator(".message").all()]
                assert roles == ["message system", "message user"]
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


@pytest.mark.parametrize("place", ["/run/999999", "/nowhere", "/%", "/run/%E0%A4%A"])
def test_a_place_that_is_not_there(visit, place):
    tab = visit.go("/runs", "tbody tr")
    tab = visit.go(place, ".empty")
    said = tab.inner_text("main")
    assert "There is no such run" in said or "There is no place" in said or "malformed" in said
    assert tab.title() != "Runs · SimpleLLMFunc"
    visit.problems = [problem for problem in visit.problems if "404" not in problem]


# --- functions ---


def test_versions_stand_side_by_side_with_charts(visit):
    tab = visit.go("/functions", "tbody tr")
    tab.click("text=read_order")
    tab.wait_for_selector(".diff")
    assert tab.locator(".versions .list li").count() == 3
    assert tab.locator(".chart canvas").count() == 4
    colours_of = "(c) => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    drawn = tab.evaluate(f"[...document.querySelectorAll('.chart canvas')].map({colours_of})")
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
