"""What people do with runs on the page, in a real browser: sort, narrow, mark, compare, take along, try."""

from __future__ import annotations

import asyncio
import json
import types

import pytest

from SimpleLLMFunc import use_llm
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.evaluate import read_cases
from SimpleLLMFunc.observability.store.rows import RunQuery
from SimpleLLMFunc.testing import ScriptedLLM
from tests.viewer import shop
from tests.viewer.served import Served, Visit, app_of, in_thread, keep, until
from tests.viewer.test_files import report_of

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(120)]


# --- the list ---


def test_runs_are_sorted_and_narrowed_and_views_are_kept(visit, filled):
    again = filled.reader.runs(RunQuery(asked_again=True), sort="cost").runs
    assert 1 < len(again) < 6
    tab = visit.go("/runs", "tbody tr")
    tab.click("th button:has-text('Cost')")
    until(tab, "document.querySelector('th[aria-sort=descending] button')?.textContent.startsWith('Cost')")
    shown = tab.locator("tbody td.number:nth-child(7)").all_inner_texts()
    costs = [float(text.strip("$").replace("–", "-1")) for text in shown]
    assert costs == sorted(costs, reverse=True)
    tab.click("th button:has-text('Cost')")
    until(tab, "document.querySelector('th[aria-sort=ascending]') !== null")
    assert "sort=cost&ascending=1" in tab.url
    tab.click("text=More filters")
    tab.select_option("#filter-asked_again", "1")
    until(tab, f"document.querySelectorAll('tbody tr').length === {len(again)}")
    tab.fill("#filter-max_cost", f"{again[-2].cost:.9f}")
    tab.press("#filter-max_cost", "Tab")
    until(tab, "document.querySelectorAll('tbody tr').length === 1")
    assert tab.locator(".chip").all_inner_texts() == ["Asked again: Yes ×", f"USD, less than: {again[-2].cost:.9f} ×"]
    tab.select_option("select[aria-label='Saved views']", "save")
    tab.fill("dialog input", "dear ones")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("dialog", state="detached")
    tab.click("text=Clear all")
    until(tab, "document.querySelectorAll('tbody tr').length === 6")
    assert "asked_again" not in tab.url
    tab.reload()
    tab.wait_for_selector("tbody tr")
    tab.select_option("select[aria-label='Saved views']", label="dear ones")
    until(tab, "document.querySelectorAll('tbody tr').length === 1")
    assert "sort=cost" in tab.url
    assert "max_cost=" in tab.url


# --- texts ---


def test_texts_are_set_as_markdown_without_html_pictures_or_links(visit, filled):
    answer = (
        "# Tea\n\nA **bold** word, `code` and <img src=x onerror=alert(1)>.\n\n- one\n- two\n\n"
        "![a pot](http://127.0.0.1:1/pot.png) [more](javascript:alert(1))\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx = 1\n```"
    )

    asked = shop.describe.with_options(llm_interface=ScriptedLLM(answer))
    in_thread(lambda: keep(filled, lambda: asked("pot")))
    tab = visit.go(f"/run/{filled.reader.runs().runs[0].id}", ".fall")
    assert tab.locator(".markdown").count() == 0
    tab.click("button:has-text('Markdown')")
    tab.wait_for_selector(".markdown [role=heading]")
    assert tab.evaluate("document.querySelectorAll('main img, main .markdown a').length") == 0
    card = tab.locator("section.card", has=tab.locator("h2:text-is('Answer')"))
    answer_box = card.locator(".markdown")
    assert answer_box.locator("strong").inner_text() == "bold"
    assert answer_box.locator("li").all_inner_texts() == ["one", "two"]
    assert answer_box.locator("td").all_inner_texts() == ["1", "2"]
    assert "<img src=x onerror=alert(1)>" in answer_box.inner_text()
    assert "a pot (http://127.0.0.1:1/pot.png)" in answer_box.inner_text()
    card.locator(".copy").click()
    tab.wait_for_selector("text=Copied")
    assert tab.evaluate("navigator.clipboard.readText()") == answer
    tab.click(".facts .term summary")
    assert "hash of docstring" in tab.locator(".term[open] .about").inner_text()
    tab.keyboard.press("Escape")
    assert tab.locator(".term[open]").count() == 0


# --- verdicts, and what is taken along ---


def test_a_run_is_marked_becomes_a_case_and_is_taken_along(browser, filled, tmp_path):
    app = app_of(filled, allow_run=[shop], cases=tmp_path / "cases")
    with Served(app) as page, Visit(browser, page.address, accept_downloads=True) as visit:
        moods = filled.reader.runs(RunQuery(function="mood")).runs
        tab = visit.go(f"/run/{moods[0].id}", ".fall")
        tab.click("button[data-thumb=up]")
        tab.wait_for_selector("button[data-thumb=up][aria-pressed=true]")
        tab.fill("#mark-tag", "polite")
        tab.press("#mark-tag", "Enter")
        tab.wait_for_selector(".chip:has-text('polite')")
        tab.fill("#mark-score", "0.75")
        tab.press("#mark-score", "Tab")
        until(tab, "document.querySelector('.chip') !== null")
        tab.click("button:text-is('Add to cases')")
        tab.fill("#case-value", '{"label": "neutral", "confidence": 1')
        tab.click("dialog button.first")
        tab.wait_for_selector("dialog :text('This is no JSON')")
        tab.fill("#case-value", '{"label": "neutral", "confidence": 1}')
        tab.click("dialog button.first")
        tab.wait_for_selector("dialog :text('1 case written to')")
        tab.keyboard.press("Escape")
        with tab.expect_download() as caught:
            tab.click("text=Save as HTML")
        sent = caught.value.path().read_text(encoding="utf-8")
        assert caught.value.suggested_filename == f"run-{moods[0].id}.html"
        assert "polite" in sent
        tab = visit.go("/runs?tag=polite", "tbody tr")
        assert tab.locator("tbody tr").count() == 1
        assert "score 0.75" in tab.inner_text("tbody tr")
        with tab.expect_download() as caught:
            tab.select_option("select[aria-label=Export]", "csv")
        assert caught.value.path().read_text(encoding="utf-8-sig").count("mood_") == 1
        tab = visit.go("/runs?function=mood", "tbody tr")
        for at in range(2):
            tab.locator("tbody .tick").nth(at).check()
        tab.click("text=Add to cases")
        tab.click("dialog button.first")
        tab.wait_for_selector("dialog :text('2 cases written to')")
        tab.go_back()
        tab.wait_for_selector("dialog", state="detached")
        wanted = [case.expected for case in read_cases(tmp_path / "cases" / "mood.jsonl")]
        assert wanted == [{"label": "happy", "confidence": 0.92}] * 2
        assert visit.problems == []


# --- what belongs together ---


def test_runs_inside_a_run_stand_in_its_waterfall_as_a_tree(visit, filled):
    in_thread(lambda: keep(filled, lambda: shop.clerk_agent("Look at the letters.")))
    run = filled.reader.runs(RunQuery(function="clerk_agent")).runs[0]
    tab = visit.go(f"/run/{run.id}", ".fall .row")
    rows = tab.locator(".fall .label").all()
    names = [row.inner_text() for row in rows]
    assert names == ["Request 1", "moods_of", "mood", "mood", "size_of", "size", "size", "size", "size", "Request 2"]
    assert filled.reader.run(run.id).tool_calls[0].content == "happy, happy"
    levels = [row.evaluate("(label) => parseInt(getComputedStyle(label).paddingLeft)") for row in rows]
    assert levels[2] > levels[1] > levels[0], "the rows of a map are under the tool that asked for it"
    assert levels[6] == levels[7] == levels[8] > levels[5] > levels[4], "the votes are under what they are votes of"
    tab.locator(".fall .row", has_text="mood").nth(1).click()
    tab.wait_for_selector("h1:has-text('mood')")
    tab.click("text=part of >> .. >> a")
    tab.wait_for_selector("h1:has-text('clerk_agent')")


def test_a_conversation_is_read_as_one_with_its_runs(visit, filled):
    async def talk():
        history = []
        with watching(filled, session_id="s-0"), use_llm(ScriptedLLM("Hello.")):
            await shop.clerk_agent("Hi.")
        with watching(filled, session_id="Ines & <Tom>", user_id="Ines"):
            for message in ("When do you open?", "And on <b>Sundays</b>?"):
                async for _, history in shop.clerk(history, message):
                    pass
            await shop.clerk_agent("Look at the letters.")
        with watching(filled):
            await shop.helper.process_query("Who are you?", session_id="s-2")

    in_thread(lambda: asyncio.run(talk()))
    assert filled.flush()
    tab = visit.go("/sessions", "tbody tr")
    assert [line.inner_text() for line in tab.locator("tbody .name").all()] == ["s-2", "Ines & <Tom>", "s-0"]
    assert "When do you open?" in tab.inner_text("tbody tr:nth-child(2)")
    tab.click("text=Ines & <Tom>")
    tab.wait_for_selector(".exchange")
    said = [bubble.inner_text() for bubble in tab.locator(".bubble.mine").all()]
    assert said == ["When do you open?", "And on <b>Sundays</b>?", "Look at the letters."]
    assert "Answer number 2" in tab.locator(".bubble:not(.mine)").nth(1).inner_text()
    assert tab.locator(".exchange").nth(2).locator("details summary").inner_text() == "3 runs inside"
    tab.locator(".exchange").first.locator("a").click()
    tab.wait_for_selector(".fall")
    tab.click("text=Ines & <Tom>")
    tab.wait_for_selector(".exchange")
    tab = visit.go("/session/s-2", ".exchange")
    assert "I am the assistant of the shop." in tab.inner_text("main")
    assert "$" in tab.inner_text(".head")
    assert "$" not in visit.go("/session/s-0", ".exchange").inner_text(".head"), "a price that is not known is not 0"
    # In lists, what was said stands there, not the conversation before it.
    tab = visit.go("/runs?function=clerk", "tbody tr")
    assert tab.locator("tbody .asked").first.inner_text() == "And on <b>Sundays</b>?"


# --- compared and tried ---


def test_runs_versions_and_reports_are_compared(browser, filled, tmp_path):
    paths = [tmp_path / "old.json", tmp_path / "new.json"]

    def work():
        report_of(8).save(paths[0])
        report_of(16).save(paths[1])
        with watching(filled):
            for function in shop.OLDER_READ_ORDER:
                asyncio.run(function.with_options(llm_interface=shop.order_llm())("The same letter."))

    in_thread(work)
    assert filled.flush()
    with Served(app_of(filled, reports=paths)) as page, Visit(browser, page.address) as visit:
        tab = visit.go("/runs?function=mood", "tbody tr")
        tab.keyboard.press("j")
        tab.keyboard.press("x")
        tab.keyboard.press("j")
        tab.keyboard.press("x")
        tab.click("a:text-is('Compare')")
        tab.wait_for_selector(".diff")
        assert "谢谢你们" in " ".join(tab.locator(".diff td.del, .diff td.add").all_inner_texts())
        changed = tab.locator("td.changed").count()
        assert changed >= 1, "what differs is marked"
        tab.click("text=Swap")
        until(tab, "document.querySelector('main').dataset.place.includes('compare')")
        tab = visit.go("/function/read_order", ".versions .list")
        tab.locator(".versions .list button").nth(0).click()
        tab.wait_for_selector(".gap .facts, .gap .under")
        assert "Same arguments" in tab.inner_text(".gap")
        tab = visit.go("/reports", ".interval")
        tab.select_option("select[aria-label='Compare with'] >> nth=0", label="new.json")
        tab.wait_for_selector("text=old.json → new.json")
        assert tab.locator(".rows > li").count() == 8
        assert "+0.400" in tab.inner_text("table")
        tab.locator(".rows summary").first.click()
        assert '"angry"' in tab.locator(".rows li").first.inner_text()
        tab.select_option("select[aria-label='Which cases']", "all")
        until(tab, "document.querySelectorAll('.rows > li').length === 20")
        assert visit.problems == []


def test_a_function_is_tried_in_two_columns_over_cases_and_taken_as_a_patch(browser, filled, tmp_path):
    cases = tmp_path / "cases"
    cases.mkdir()
    wanted = [{"label": "happy", "confidence": confidence} for confidence in (0.92, 0.92, 0.5)]
    lines = [{"args": {"text": f"letter {at}"}, "expected": value} for at, value in enumerate(wanted)]
    (cases / "mood.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    stubborn = ScriptedLLM("no idea", "still none", repeat=True)
    module = types.ModuleType("tried")
    module.mood, module.stubborn, module.__all__ = shop.mood, stubborn, ["mood"]
    with Served(app_of(filled, allow_run=[module], cases=cases)) as page, Visit(browser, page.address) as visit:
        visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab = visit.go("/play/mood", "form")
        tab.fill("#field-text", "Hm.")
        tab.click("text=Two columns")
        tab.locator("summary:has-text('Change for this try')").nth(1).click()
        tab.fill("#variant-B-docstring", "Say the mood. Be strict.")
        tab.fill("#variant-B-temperature", "warm")
        tab.click("form button.first")
        tab.wait_for_selector(".wrong:text('A number.')")
        tab.fill("#variant-B-temperature", "0.2")
        tab.click("form button.first")
        tab.wait_for_selector("text=Compared")
        assert tab.locator("a:text-is('Open the run')").count() == 2
        tab.click("text=Copy as a patch of the source >> visible=true")
        until(tab, "navigator.clipboard.readText().then((text) => text.includes('+++ b/'))")
        assert '+    """Say the mood. Be strict."""' in tab.evaluate("navigator.clipboard.readText()")
        tab.fill("#variant-B-model", "stubborn")
        tab.click("text=Run over 3 cases")
        until(tab, "document.querySelector('[role=status]')?.innerText.includes('2 of 3 right, 0 failed')")
        until(tab, "document.querySelector('main').innerText.includes('0 of 3 right, 3 failed')")
        tab.click("form button.first")
        tab.wait_for_selector("text=/attempts?, none fits/")
        assert "no idea" in tab.inner_text("main")
        tab.locator("section.card", has_text="none fits").locator("a:text-is('Open the run')").click()
        tab.wait_for_selector("h1 .badge.error")
        assert visit.problems == []
