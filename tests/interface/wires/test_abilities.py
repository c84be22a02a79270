"""The page of abilities: written from outcomes, and what failed shows."""

from types import SimpleNamespace

from tests.interface.wires.abilities import ABILITIES, PAGE, REAL, Seen, page


def test_a_cell_is_what_the_tests_said():
    seen = Seen()
    for case, outcome in (("chat", "passed"), ("responses-False", "passed"), ("responses-True", "failed")):
        test = f"{REAL}::test_a_cut_answer_is_a_cut_answer[{case}]"
        seen.pytest_runtest_logreport(SimpleNamespace(nodeid=test, when="call", outcome=outcome))
    row = next(line for line in page(seen).splitlines() if line.startswith("| a cut answer"))
    assert row.endswith("| 1 | **1 of 2 failed** | – | – |")


def test_the_page_holds_every_ability_and_nothing_that_failed():
    text = PAGE.read_text("utf-8")
    assert all(f"| {what} |" in text for what, _, _ in ABILITIES)
    assert "failed**" not in text
