"""Results in a notebook and on a terminal: text only, without secrets, of every author."""

from __future__ import annotations

import io
from html.parser import HTMLParser

import pytest
from rich.console import Console
from rich.pretty import pretty_repr

from SimpleLLMFunc import tool, watching
from SimpleLLMFunc.display.cards import Card, Part, as_html, as_rich, plainly
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing import tool_calls as calling
from tests.support.functions import function_of
from tests.support.processes import check_script

ATTACKS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>',
    "</pre></td></table></details></div><iframe src=javascript:alert(1)>", "</style><style>*{display:none}",
    "[link=https://evil.example]click[/link]", "[bold red]markup[/]", "&lt;b&gt;",
    "\x1b]8;;https://evil.example\x07x", "a\u202eb", "half \udc80",
]  # fmt: skip
KEY = "sk-" + "Ab3" * 12


class Tags(HTMLParser):
    """Collects what is no text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = set(), [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_data(self, data):
        self.text.append(data)


def checked(page):
    """Return the text of a page that holds nothing but text."""
    found = Tags(page)
    assert found.tags <= {"div", "style", "b", "table", "tr", "th", "td", "pre", "details", "summary"}
    assert found.attributes == [("div", "class", "slf")]
    assert page.count("</") == sum(page.count(f"</{tag}>") for tag in found.tags)
    text = "".join(found.text)
    assert not {"\x1b", "\u202e", "\udc80", "\x07"} & set(text)
    page.encode()
    return text


def printed(thing, width=200):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(thing)
    return console.file.getvalue()


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_card_is_text_wherever_it_was_written(attack):
    card = Card(attack, [(attack, attack)], [Part(attack, [(attack, attack)], (attack, "b"))])
    text = checked(as_html(card))
    if attack.startswith("<"):
        assert text.count(attack) >= 5
    if "[" in attack and "\x1b" not in attack:
        shown = printed(as_rich(Card(attack, [(attack, attack)], [Part("t", [(attack,)])])))
        assert shown.count(attack) == 4


@pytest.mark.parametrize("attack", ATTACKS)
def test_everything_shown_is_text(attack, tmp_path):
    @tool
    def look(q: str) -> str:
        """Look."""
        return attack

    llm = ScriptedLLM(calling(("look", {"q": attack})), attack, {"content": f'["{len(attack)}"]'}, repeat=True)
    ask = function_of(llm, list[int], toolkit=[look], extra_body={"note": attack})
    with TraceStore(tmp_path / "t.sqlite") as store:
        with watching(store):
            result = ask.call(attack)
        report = ask.map([attack, "x"])
        assert store.flush()
        shown = [result, ask.preview(attack), report, store.reader.runs(), store.reader.run(1)]
        for each in shown:
            text = checked(each._repr_html_())
            if attack.startswith("<"):
                assert attack in text, type(each).__name__
            plain = printed(each)
            assert "\x1b" not in plain
            assert "\u202e" not in plain
        report.close()


def test_no_key_is_shown(tmp_path):
    remember_secret(KEY)

    ask = function_of(ScriptedLLM(f"the key is {KEY}", repeat=True))
    result = ask.call(f"api_key={KEY}")
    for each in (result, ask.preview(KEY), ask.map([KEY])):
        assert KEY not in each._repr_html_()
        assert "***" in each._repr_html_()
        assert KEY not in printed(each)


def test_the_command_of_a_preview_can_be_run_and_shows_no_key():
    preview = function_of(ScriptedLLM()).preview(f"{KEY} $OPENAI_API_KEY {KEY}")
    for shown in (preview._repr_html_(), printed(as_rich(Card("", [("as curl", preview.as_curl())])))):
        assert "Bearer $OPENAI_API_KEY" in shown
        assert KEY not in shown


def test_a_result_says_what_matters():
    result = function_of(ScriptedLLM("no", '{"stars": "5"}'), dict[str, int]).call("x")
    page = result._repr_html_()
    for wanted in ("stars", "number taken from", "1 repair", "1 violation of", "messages", result.trace_id, "tokens"):
        assert wanted in page, wanted
        assert wanted in printed(result), wanted
    assert pretty_repr([result]).startswith("[\n    Result(\n        value={'stars': 5},")
    assert "cached=" not in pretty_repr([result]), "what is as always is left out"


def test_a_preview_says_that_nothing_was_sent():
    preview = function_of(ScriptedLLM(), temperature=0.5).preview("x")
    page = preview._repr_html_()
    for wanted in ("nothing has been sent", "temperature", "curl", "tokens", "system"):
        assert wanted in page, wanted
    assert "Preview(" in pretty_repr([preview])


def test_a_map_shows_its_first_rows_and_errors():
    llm = ScriptedLLM(lambda request: "x" if "7" in request.text else "1", repeat=True)
    number = function_of(llm, int, "number", max_reasks=0)
    report = number.map([str(each) for each in range(30)])
    page = report._repr_html_()
    assert "the first 10 of 30 rows" in page
    assert "ResponseParseError" in page
    assert "Map of number" in page
    assert "MapReport(" in pretty_repr([report])
    assert printed(report).count("ResponseParseError") >= 2
    report.close()
    assert "Map" in number.map([])._repr_html_()


def test_what_cannot_be_shown_is_shown_by_its_type():
    class Odd:
        def __repr__(self):
            raise RuntimeError("no")

    assert plainly(Odd()) == "<Odd>"
    assert plainly({"a": Odd()}) == "<dict>"
    assert plainly({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'
    long = as_html(Card("t", [("a", "x" * 100_000)], [Part("p", [("y" * 100_000,)] * 500)]))
    assert len(long) < 300_000
    assert "and 450 more" in long


def test_rich_is_not_imported_until_it_is_used():
    code = """
        import sys
        from SimpleLLMFunc.testing import ScriptedLLM
        from tests.support.functions import function_of
        ask = function_of(ScriptedLLM('x', repeat=True))
        result = ask.call('x')
        result._repr_html_(); repr(result); list(result.__rich_repr__()); ask.preview('x')._repr_html_()
        assert not [name for name in sys.modules if name.partition('.')[0] == 'rich']
        result.__rich__()
        assert 'rich.table' in sys.modules
    """
    check_script(code, "")


def test_a_checkpoint_that_is_gone_is_said_and_not_raised(tmp_path):
    number = function_of(ScriptedLLM("1", repeat=True), int, "number")
    path = tmp_path / "run.sqlite"
    report = number.map(["a", "b"], checkpoint=path)
    report.close()
    for each in tmp_path.iterdir():
        each.unlink()
    assert "Map of number" in report._repr_html_()
