"""What may leave the process."""

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import logging
import pathlib
import sys
import uuid

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.logger.redact import (
    MASK,
    RedactingFilter,
    escape_control,
    looks_secret,
    redact,
    redact_logs_of,
    render_arguments,
    shown_data,
)
from SimpleLLMFunc.type.multimodal import ImgPath, ImgUrl

module = sys.modules[remember_secret.__module__]
CANARY = "sk-CANARY0123456789abcdefXYZ"
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 100


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Each test begins with no secret known, and leaves none."""
    monkeypatch.setattr(module, "_known", ())


# --- secrets we were told ------------------------------------------------------------------------------------


def test_a_remembered_secret_is_masked_wherever_it_stands():
    remember_secret("correct horse battery")
    assert redact("xcorrect horse batteryx, correct horse battery") == f"x{MASK}x, {MASK}"


def test_words_are_no_secrets():
    remember_secret("short")
    remember_secret("   seven77   ")
    assert redact("short seven77") == "short seven77"


def test_blanks_around_a_secret_do_not_count():
    remember_secret("  long enough\n")
    assert redact("it is long enough!") == f"it is {MASK}!"


def test_of_two_secrets_one_inside_the_other_both_go():
    remember_secret("inner-part")
    remember_secret("the-inner-part-of-it")
    assert redact("the-inner-part-of-it inner-part") == f"{MASK} {MASK}"


@given(secret=st.text(min_size=8), before=st.text(), after=st.text())
@example(secret="********", before="", after="")
@example(secret="\\n" * 8, before="\n", after="")
def test_any_remembered_secret_goes(secret, before, after):
    secret = secret.strip()
    if len(secret) < 8 or set(secret) <= set(MASK):
        return
    module._known = ()
    remember_secret(secret)
    assert secret not in redact(before + secret + after)


# --- secrets we can tell by their looks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sk-abcdefgh12345", "sk-***"),
        ("sk-proj-ab_cd-ef", "sk-***"),
        ("provided: sk-ab****************wxyz.", "provided: sk-***."),
        ("gsk_abcdefgh12345678", "gsk_***"),
        ("AIzaSyA-abcdefghijklmnop12345", "AIza***"),
        ("ghp_0123456789abcdefABCDEF", "ghp_***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("authorization: Basic dXNlcjpwdw==", "authorization: Basic ***"),
        ("bearer abcdef1", "bearer ***"),
        ("api_key=hunter2 next", "api_key=*** next"),
        ("apikey: hunter2, next", "apikey: ***, next"),
        ("{'api-key': 'hunter two', 'b': 1}", "{'api-key': '***', 'b': 1}"),
        ('{"api_key": "it\\"s", "b": 1}', '{"api_key": "***", "b": 1}'),
        ('{\\"api_key\\": \\"hunter two\\", \\"b\\": 1}', '{\\"api_key\\": \\"***\\", \\"b\\": 1}'),
        ("api_keys: ['a', 'b'] next", "api_keys: [***] next"),
        ("password='it\\'s' next", "password='***' next"),
        ("Password => hunter2", "Password => ***"),
        ('{"token": "abc"}', '{"token": "***"}'),
        ("token=abc&x=1", "token=***&x=1"),
        ("[('x-api-key', 'hunter2'), ('accept', '*')]", "[('x-api-key', '***'), ('accept', '*')]"),
        ("[(b'authorization', b'Basic x')]", "[(b'authorization', b'***')]"),
        ("postgres://u:pw@h/db", "postgres://***@h/db"),
        ("postgres://u:p@ss@h/db", "postgres://***@h/db"),
        ("postgres://u:p/w@h/db", "postgres://***@h/db"),
        ("https://token@github.com/x", "https://***@github.com/x"),
        ("https://h/v1?key=abc&b=2", "https://h/v1?key=***&b=2"),
        ("https://h/v1?a=1&X-Amz-Signature=abc#top", "https://h/v1?a=1&X-Amz-Signature=***#top"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJ", "***"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----",
        ),
    ],
)
def test_what_looks_like_a_secret_is_masked(text, expected):
    assert redact(text) == expected
    assert redact(expected) == expected, "masking twice changes nothing more"


@pytest.mark.parametrize(
    "text",
    [
        "", "risk-assessment-of-the-whole-company and ask-me-anything-2024",
        "task-550e8400-e29b-41d4-a716-446655440000", "npm_config_registry and hf_transformers_home_dir",
        "scikit sk-learn", "max_tokens=100, prompt_tokens: 12, input_tokens=3", "unexpected token: '}' at 3",
        "The secret: be kind. A secret of good cooking.", "Missing bearer or basic authentication in header",
        "Bearer authentication is needed", "api_key=None, password: null, api_key=''",
        'Write OpenAICompatible("m", api_key=…), or OpenAICompatible("m", api_key=...).',
        "http://localhost:8080/path@2x.png", "see https://example.org/a?b=c&d=e;f", "write to someone@example.org",
        'required: ["api_key", "city"]', "key: value, keyboard=qwerty, monkey=ape", "f(x) = a ? b : c",
    ],
)  # fmt: skip
def test_ordinary_text_stays(text):
    assert redact(text) == text


# --- characters that do something ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, 中文, émoji 🎉, C:\\path", "plain text, 中文, émoji 🎉, C:\\path"),
        ("ok\n2026-01-01 ERROR root fake", "ok\\n2026-01-01 ERROR root fake"),
        ("a\r\n\tb", "a\\r\\n\\tb"),
        ("\x1b]8;;http://evil\x07", "\\u001b]8;;http://evil\\u0007"),
        ("a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd"),
        ("nul\x00 del\x7f c1\x9b", "nul\\u0000 del\\u007f c1\\u009b"),
        ("half\ud800 a character", "half\\ud800 a character"),
        ("a\u2028b\u2029c\ufeffd", "a\\u2028b\\u2029c\\ufeffd"),
        ("family 👩‍👧 and ن\u200cف", "family 👩‍👧 and ن\u200cف"),
    ],
)
def test_control_characters_are_escaped(text, expected):
    assert escape_control(text) == expected


@given(st.text(alphabet=st.characters()))
def test_what_is_escaped_is_one_line_that_any_file_can_hold(text):
    escaped = escape_control(text)
    assert len(escaped.splitlines()) <= 1
    escaped.encode("utf-8")
    assert escape_control(escaped) == escaped


# --- arguments -----------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


class Name(enum.StrEnum):
    ANN = "ann"


class Person(BaseModel):
    name: str
    password: str = "hunter2"


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    hidden: str = dataclasses.field(default="no", repr=False)


class Broken:
    def __repr__(self):
        raise ValueError("no repr")


def rendered(**arguments):
    return json.loads(render_arguments(arguments))


def test_arguments_become_json():
    assert rendered(
        text="héllo 中文",
        number=3,
        ratio=0.5,
        yes=True,
        nothing=None,
        many=[1, (2, 3)],
        table={"a": {"b": 1}, 7: 8},
        colour=Colour.RED,
        name=Name.ANN,
        person=Person(name="Ann"),
        point=Point(1),
        day=dt.date(2026, 1, 2),
        price=decimal.Decimal("1.10"),
        path=pathlib.PurePosixPath("a/b"),
        id=uuid.UUID(int=0),
        kind=Point,
        odd=Broken(),
    ) == {
        "text": "héllo 中文",
        "number": 3,
        "ratio": 0.5,
        "yes": True,
        "nothing": None,
        "many": [1, [2, 3]],
        "table": {"a": {"b": 1}, "7": 8},
        "colour": "red",
        "name": "ann",
        "person": {"name": "Ann", "password": MASK},
        "point": {"x": 1},
        "day": "2026-01-02",
        "price": "1.10",
        "path": "a/b",
        "id": "00000000-0000-0000-0000-000000000000",
        "kind": repr(Point),
        "odd": "<Broken>",
    }


class Torn(dict):
    def items(self):
        yield "a", 1
        raise RuntimeError("changed during iteration")


released = memoryview(b"abcd")
released.release()


@pytest.mark.parametrize("odd", [Broken(), Torn(a=1), released])
def test_a_value_that_cannot_be_read_is_named_by_its_type(odd):
    assert rendered(odd=odd, after=[odd], fine=1) == {
        "odd": f"<{type(odd).__name__}>",
        "after": [f"<{type(odd).__name__}>"],
        "fine": 1,
    }


def test_keys_that_are_no_text():
    assert rendered(table={1: "a", None: "b", Colour.RED: "c", (1, 2): "d", Point(3): "e"}) == {
        "table": {"1": "a", "None": "b", "red": "c", "[1, 2]": "d", "{'x': 3}": "e"}
    }


def test_numbers_that_json_cannot_hold_are_shown_as_text():
    assert rendered(a=float("nan"), b=float("-inf"), c=10**6000) == {
        "a": "nan",
        "b": "-inf",
        "c": "<int of 19932 bits>",
    }


def test_sets_are_lists():
    assert rendered(a={1}, b=frozenset({2})) == {"a": [1], "b": [2]}


def test_secrets_are_masked_by_name_and_by_looks():
    remember_secret("remembered-secret")
    assert rendered(
        api_key="abc",
        OPENAI_API_KEY="abc",
        headers={"Authorization": "abc", "x-api-key": b"abc", "accept": "all"},
        token="abc",
        api_keys=["a", "b"],
        max_tokens=100,
        tokens=["a", "b"],
        note=f"it is {CANARY} or remembered-secret",
        password=None,
    ) == {
        "api_key": MASK,
        "OPENAI_API_KEY": MASK,
        "headers": {"Authorization": MASK, "x-api-key": MASK, "accept": "all"},
        "token": MASK,
        "api_keys": MASK,
        "max_tokens": 100,
        "tokens": ["a", "b"],
        "note": "it is sk-*** or ***",
        "password": None,
    }


def test_images_are_named_by_size(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(PNG)
    data = "data:image/png;base64," + base64.b64encode(PNG * 300).decode()
    shown = rendered(
        path=ImgPath(path),
        data=ImgUrl(data),
        text=data,
        raw=PNG,
        other=b"abc",
        url=ImgUrl("https://user:pw@example.org/a.png"),
        sound="data:audio/wav;base64,AAAA",
    )
    assert shown == {
        "path": "<image 108 B>",
        "data": "<image 32 kB>",
        "text": "<image 32 kB>",
        "raw": "<image 108 B>",
        "other": "<bytes 3 B>",
        "url": "https://***@example.org/a.png",
        "sound": "<audio 3 B>",
    }


def test_an_image_that_went_away_is_named_by_its_path(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(PNG)
    image = ImgPath(path)
    path.unlink()
    assert "picture.png" in rendered(path=image)["path"]


def test_long_arguments_are_cut():
    text = render_arguments({"text": "x" * 10_000_000, "more": 1})
    assert len(text) == 2000
    assert text.endswith("…")
    assert len(render_arguments({"text": "x" * 100}, limit=50)) == 50


def test_recursion_ends():
    endless = {}
    endless["self"] = [endless]
    assert "…" in render_arguments(endless)


def test_a_secret_is_never_cut_in_half():
    remember_secret(CANARY)
    for length in range(80):
        text = render_arguments({"a": "x" * length + CANARY}, limit=60)
        assert "CANARY" not in text
        assert "sk-C" not in text


def test_the_text_is_one_line_that_any_file_can_hold():
    text = render_arguments({"a": "line\nbreak\ud800\u202e", "b\n": "\x7f"})
    assert text == '{"a": "line\\nbreak\\ud800\\u202e", "b\\n": "\\u007f"}'
    assert json.loads(text) == {"a": "line\nbreak\ud800\u202e", "b\n": "\x7f"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=25)
@given(arguments=st.dictionaries(st.text(), json_values), limit=st.integers(1, 300), key=st.text())
def test_a_canary_survives_in_no_arguments(arguments, limit, key):
    remember_secret(CANARY)
    full = render_arguments({key: [arguments, CANARY], CANARY: CANARY, **arguments}, limit=limit)
    assert CANARY not in full
    assert len(full) <= limit
    full.encode("utf-8")


# --- what other libraries log ------------------------------------------------------------------------------


def test_what_others_log_on_our_behalf_is_redacted(caplog):
    caplog.set_level("DEBUG")
    name = "somebody.elses.http"
    redact_logs_of(name, name)
    logger = logging.getLogger(name)
    assert len(logger.filters) == 1
    remember_secret("correct horse battery")
    logger.info("GET %s", "https://host/v1?api_key=0123456789abcdef")
    logger.info("with correct horse battery")
    logger.info("nothing %s", "special")
    logger.info("wrong %d", 1)
    texts = [record.getMessage() for record in caplog.records]
    assert texts == ["GET https://host/v1?api_key=***", f"with {MASK}", "nothing special", "wrong 1"]
    assert caplog.records[2].args == ("special",)


def test_a_record_that_cannot_be_rendered_is_left_to_its_handlers():
    record = logging.LogRecord("x", 20, "f", 1, "%d %d", ("a",), None)
    assert RedactingFilter().filter(record)
    assert (record.msg, record.args) == ("%d %d", ("a",))


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("X-Api-Key", "abcdefgh", True), ("key", "short", False), ("Helicone-Auth", "Bearer x", True), ("code", "12345678", True),
        ("X-Title", "a title of an application", False), ("HTTP-Referer", "https://example.com/app", False),
        ("model", "gpt-4o-mini-2024-07-18", False), ("x", "0123456789abcdef", True), ("x", "aaaaaaaaaaaaaaaaaaaaaaaa", False),
        ("x", "sk-abcdefgh", True), ("x", "0b5c2f6e-9d5b-4c1f-8f55-0a2a5a4c9a11", True),
    ],
)  # fmt: skip
def test_secrets_of_headers_and_addresses_are_told_by_name_or_looks(name, value, is_secret):
    assert looks_secret(name, value) is is_secret


def test_of_a_text_that_is_much_too_long_only_the_head_is_read():
    key = "sk-CANARY0123456789abcdefCANARY"
    for place in range(1970, 2000):
        shown = shown_data("x" * place + " " + key + " " + "y" * 1_000_000, 2000)
        assert "CANARY" not in shown
        assert len(shown) <= 2001
        assert shown.endswith("…")
    assert shown_data(f"password={'p' * 20_000} and more", 2000) == f"password={MASK}…"


def test_data_stays_data():
    shown = shown_data({"a": [1, None, {"b": "text"}], "password": "x"}, 1000)
    assert shown == {"a": [1, None, {"b": "text"}], "password": MASK}
    assert shown_data([[[["deep"]]]], 1000, deepest=2) == [["…"]]
