import importlib
import json
import sys

import pytest
from click.testing import CliRunner

from SimpleLLMFunc.cli.main import main
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.lock import Locked, check_lock, lock_of, read_lock, write_lock
from SimpleLLMFunc.testing import ScriptedLLM, use_cassette
from tests.support.canary import CANARIES

GRADING = '''
from pydantic import BaseModel
from SimpleLLMFunc import OpenAICompatible, llm_function

llm = OpenAICompatible("gpt-5-mini", api_key="{key}", base_url="https://{host}/v1", api_params={{"seed": 1}})


class Grade(BaseModel):
    stars: int


def stock(article: str) -> int:
    """Look up."""
    return 3


@llm_function(llm_interface=llm, toolkit=[stock], temperature=0.2)
async def grade(essay: str, strict: bool = False) -> Grade:
    """Grade it."""
    raise NotImplementedError


@llm_function
def name_it(text: str) -> str:
    """Name it."""
'''.replace("{key}", CANARIES[0].key).replace("{host}", "gateway.example.com").replace("{{", "{").replace("}}", "}")  # fmt: skip

CHATTING = '''
from collections.abc import AsyncIterator
from SimpleLLMFunc import ChatPair, FallbackLLM, OpenAICompatible, llm_chat, llm_function
from shop.grading import grade

both = FallbackLLM(OpenAICompatible("a", api_key="k" * 20), OpenAICompatible("b", api_key="k" * 20))


@llm_chat(llm_interface=both, extra_body={"team": "a-secret-of-the-team"})
async def talk(history: list, message: str) -> AsyncIterator[ChatPair]:
    """Talk."""


class Shop:
    @llm_function
    def advise(self, question: str) -> str:
        """Advise."""

    class Inner:
        @staticmethod
        @llm_function
        def deep(x: int) -> int:
            """Deep."""
'''


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__init__.py").write_text("from shop.grading import grade\n")
    (folder / "__main__.py").write_text("raise SystemExit('it was run')\n")
    (folder / "grading.py").write_text(GRADING)
    (folder / "chatting.py").write_text(CHATTING)
    yield folder
    forget()


def forget():
    for name in [name for name in sys.modules if name == "shop" or name.startswith("shop.")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def locked(*names):
    forget()
    sys.dont_write_bytecode = True  # a file changed within the same second would be read from its old bytes
    return lock_of(*(importlib.import_module(name) for name in names or ("shop",)))


def changed(shop, old, new, file="grading.py"):
    before = locked()
    text = (shop / file).read_text()
    assert old in text
    (shop / file).write_text(text.replace(old, new))
    return {each.function: each.changed for each in check_lock(before, locked()).differences}


def test_every_function_of_a_package_where_it_was_written(shop):
    found = locked()
    assert list(found) == [
        "shop.chatting:Shop.Inner.deep", "shop.chatting:Shop.advise", "shop.chatting:talk", "shop.grading:grade",
        "shop.grading:name_it",
    ]  # fmt: skip
    assert list(locked("shop.grading")) == ["shop.grading:grade", "shop.grading:name_it"]
    module = sys.modules["shop.grading"]
    assert found["shop.grading:grade"].version == module.grade._pipeline.metadata.version


def test_model_and_parameters(shop):
    found = locked()
    grade = found["shop.grading:grade"]
    assert grade.model == ("gpt-5-mini",)
    assert grade.parameters == {"seed": 1, "temperature": 0.2}
    assert found["shop.grading:name_it"].model == ()
    assert found["shop.chatting:talk"].model == ("a", "b")
    assert found["shop.chatting:talk"].parameters == {"extra_body": {"team": "***"}}


def test_neither_keys_nor_addresses_reach_the_file(shop, tmp_path):
    write_lock(tmp_path / "llm.lock", locked(), ["shop"])
    text = (tmp_path / "llm.lock").read_text()
    assert CANARIES[0].found_in(text) == ""
    assert "gateway" not in text
    assert "a-secret" not in text
    assert "gpt-5-mini" in text


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("Grade it.", "Grade it well.", ("prompt",)),
        ("toolkit=[stock]", "toolkit=[stock], system_prompt_template='{function_description}'", ("prompt",)),
        ("toolkit=[stock]", "toolkit=[stock], examples=[(('x',), Grade(stars=3))]", ("prompt",)),
        ("toolkit=[stock]", "toolkit=[stock], user_prompt_template='Now: {parameters}'", ("prompt",)),
        ("toolkit=[stock]", "toolkit=[stock], first=lambda essay, strict: None", ("first",)),
        ("toolkit=[stock]", "toolkit=[stock], fallback=lambda essay, strict: None", ("fallback",)),
        ("strict: bool = False", "strict: bool = True", ("signature",)),
        ("strict: bool = False", "strict: bool | None = False", ("signature", "types")),
        ("stars: int", "stars: int\n    why: str", ("types",)), ("Look up.", "Look it up.", ("tools",)),
        ("article: str", "article: str, colour: str = ''", ("tools",)), ("toolkit=[stock], ", "", ("tools",)),
        ('"gpt-5-mini"', '"gpt-5"', ("model",)), ("temperature=0.2", "temperature=0.3", ("parameters",)),
        ('"seed": 1', '"seed": 2', ("parameters",)), ("raise NotImplementedError", "...", None),
        ("gateway.example.com", "other.example.com", None), ("return 3", "return 4", None),
        ("llm =", "x = llm =", None),
    ],
)  # fmt: skip
def test_which_part_changed(shop, old, new, parts):
    assert changed(shop, old, new) == ({"shop.grading:grade": parts} if parts else {})


VOTING = """
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.type.markers import Confident


@llm_function(votes=3)
def sure(text: str) -> Confident[int]:
    'Count.'
"""


def test_a_changed_number_of_votes(shop):
    (shop / "voting.py").write_text(VOTING)
    assert changed(shop, "votes=3", "votes=5", file="voting.py") == {"shop.voting:sure": ("votes",)}


VARIANTS = """
from SimpleLLMFunc import llm_function


@llm_function
def plain(text: str) -> str:
    'Plain.'


alias = plain
german = plain.with_options(system_prompt_template="{function_description} Auf Deutsch.")
warm = plain.with_options(temperature=1)
aaa = plain.with_options(template_params={"a": 1})
"""


def test_what_with_options_made_is_locked_beside_the_function(shop, tmp_path):
    (shop / "variants.py").write_text(VARIANTS)
    found = locked("shop.variants")
    assert list(found) == ["shop.variants:aaa", "shop.variants:german", "shop.variants:plain", "shop.variants:warm"]
    module = sys.modules["shop.variants"]
    for name in ("german", "plain"):
        assert found[f"shop.variants:{name}"].version == getattr(module, name)._pipeline.metadata.version
    assert found["shop.variants:german"].version != found["shop.variants:plain"].version
    assert found["shop.variants:warm"].parameters == {"temperature": 1}
    with use_cassette(tmp_path / "c.json") as tape:
        assert module.german.with_options(llm_interface=tape.wrap(ScriptedLLM("hallo")))("x") == "hallo"
    assert check_lock(found, found, [tmp_path]).is_clean
    text = (shop / "variants.py").read_text()
    (shop / "variants.py").write_text(text.replace("Auf Deutsch", "Bitte auf Deutsch"))
    after = check_lock(found, locked("shop.variants"), [tmp_path])
    assert {each.function: each.changed for each in after.differences} == {"shop.variants:german": ("prompt",)}
    assert after.stale == {(tmp_path / "c.json").as_posix(): ("shop.variants:plain",)}


METHODS = """
from SimpleLLMFunc import llm_function


class Shop:
    @llm_function
    def one(self, text: str) -> str:
        'One.'

    @classmethod
    @llm_function
    def two(cls, text: str) -> str:
        'Two.'

    @llm_function
    @classmethod
    def three(cls, text: str) -> str:
        'Three.'

    @staticmethod
    @llm_function
    def four(text: str) -> str:
        'Four.'
"""


def test_methods_are_the_version_that_their_calls_tell(shop):
    (shop / "methods.py").write_text(METHODS)
    found = locked("shop.methods")
    there = sys.modules["shop.methods"].Shop()
    assert list(found) == [f"shop.methods:Shop.{name}" for name in ("four", "one", "three", "two")]
    for place, each in found.items():
        assert each.version == getattr(there, place.rpartition(".")[2])._pipeline.metadata.version


def test_new_and_gone(shop):
    assert changed(shop, "name_it", "call_it") == {"shop.grading:name_it": ("gone",), "shop.grading:call_it": ("new",)}


def test_the_file_comes_back_and_is_stable(shop, tmp_path):
    path = tmp_path / "llm.lock"
    assert write_lock(path, locked(), ["shop"]) is True
    before = path.read_bytes()
    assert write_lock(path, dict(reversed(locked().items())), ["shop"]) is False
    assert path.read_bytes() == before
    functions, targets = read_lock(path)
    assert targets == ["shop"]
    assert check_lock(functions, locked()).is_clean
    assert functions == locked()


def test_a_file_that_is_none(tmp_path):
    wrong = ("", "[]", "[" * 20_000, "{}", '{"lock": 1}', '{"lock": 9, "functions": {}}')
    for content in (*wrong, '{"lock": 1, "targets": [], "functions": {"f": {}}}'):
        (tmp_path / "llm.lock").write_text(content)
        with pytest.raises(ConfigError, match=r"llm\.lock"):
            read_lock(tmp_path / "llm.lock")
    (tmp_path / "llm.lock").unlink()
    with pytest.raises(ConfigError, match="simplellmfunc lock"):
        read_lock(tmp_path / "llm.lock")


def test_a_module_that_cannot_be_imported(shop):
    (shop / "broken.py").write_text(f"raise RuntimeError('api_key={CANARIES[0].key}')\n")
    with pytest.raises(ConfigError, match=r"shop\.broken") as caught:
        locked()
    assert CANARIES[0].found_in(str(caught.value)) == ""


def test_nothing_to_lock():
    with pytest.raises(ConfigError, match="no function"):
        lock_of(json)


# --- what was made with an earlier version --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Grade it.", "Grade it well."),
        ("temperature=0.2", "temperature=0.2, system_prompt_template='Do it: {function_description}'"),
        ("temperature=0.2", "temperature=0.2, user_prompt_template='With: {parameters}'"),
    ],
)
async def test_stale_cassettes(shop, tmp_path, old, new):
    before = locked()
    module = sys.modules["shop.grading"]
    path = tmp_path / "tests" / "cassettes" / "one.json"
    with use_cassette(path) as tape:
        # As pytest would: what the function asks is recorded, here of a stand-in for its service.
        await module.grade.with_options(llm_interface=tape.wrap(ScriptedLLM('{"stars": 3}')))("x")
    assert check_lock(before, before, [tmp_path]).stale == {}
    found = check_lock(before, {name: each for name, each in before.items() if "grade" not in name}, [tmp_path])
    assert found.stale == {path.as_posix(): ("shop.grading:grade",)}
    text = (shop / "grading.py").read_text()
    (shop / "grading.py").write_text(text.replace(old, new))
    found = check_lock(before, locked(), [tmp_path])
    assert found.stale == {path.as_posix(): ("shop.grading:grade",)}
    assert "stale" in str(found)
    assert "shop.grading:grade: prompt changed" in str(found)
    assert check_lock(before, locked(), [shop]).stale == {}


def test_stale_evaluations(shop, tmp_path):
    from SimpleLLMFunc.evaluate.report import EvalReport

    now = locked()
    for name, version in (("old", "0" * 16), ("new", now["shop.grading:grade"].version)):
        EvalReport("grade", "shop.grading:grade", version, "m", ()).save(tmp_path / "evals" / f"{name}.json")
    EvalReport("other", "elsewhere:other", "1" * 16, "m", ()).save(tmp_path / "evals" / "other.json")
    found = check_lock(now, now, [tmp_path])
    assert found.stale == {(tmp_path / "evals" / "old.json").as_posix(): ("shop.grading:grade",)}
    assert not found.is_clean


def test_other_files_are_let_alone(tmp_path):
    now = {"m:f": Locked("v2")}
    for name, content in {
        "a.json": '{"cassette": 1, "exchanges": [', "b.json": '{"cassette": 1}', "c.json": '{"rows": []}', "d.json": "",
        "e.json": '{"cassette": 1, "exchanges": [{"function": "m:f", "version": ""}]}', "f.txt": '{"cassette": 1}',
        ".venv/g.json": '{"cassette": 1, "exchanges": [{"function": "m:f", "version": "v1"}]}',
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert check_lock(now, now, [tmp_path]).is_clean


# --- the command ----------------------------------------------------------------------------------------------


def run(*arguments):
    forget()
    done = CliRunner().invoke(main, ["lock", *arguments])
    return done.exit_code, done.output


def test_the_command(shop, tmp_path):
    sys.dont_write_bytecode = True
    assert run("--check")[0] == 1
    assert run()[0] == 2
    assert run("shop") == (0, "llm.lock: 5 functions\n")
    assert run() == (0, "llm.lock: 5 functions, nothing new\n")
    assert run("--check") == (0, "llm.lock: 5 functions, nothing has changed\n")
    (shop / "grading.py").write_text(
        GRADING.replace("Grade it.", "Grade it well.").replace("stars: int", "stars: float")
    )
    code, output = run("--check")
    assert code == 1
    assert "shop.grading:grade: prompt, types changed\n" in output
    assert "simplellmfunc lock" in output
    code, output = run("shop.chatting", "--file", "other.lock")
    assert (code, output) == (0, "other.lock: 3 functions\n")
    assert run("no.such.package")[0] == 1
