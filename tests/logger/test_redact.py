"""What may leave the process."""

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import logging
import pathlib
import uuid

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from SimpleLLMFunc.logger import known, remember_secret
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

pytestmark = pytest.mark.usefixtures("no_secrets")
CANARY = "sk-CANARY0123456789abcdefXYZ"
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 100


# --- secrets we were told ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("secrets", "text", "expected"),
    [
        (["correct horse battery"], "xcorrect horse batteryx, correct horse battery", f"x{MASK}x, {MASK}"),
        (["short", "   seven77   "], "short seven77", "short seven77"),
        (["  long enough\n"], "it is long enough!", f"it is {MASK}!"),
        (["inner-part", "the-inner-part-of-it"], "the-inner-part-of-it inner-part", f"{MASK} {MASK}"),
    ],
    ids=["wherever it stands", "words are none", "without blanks around it", "one inside the other"],
)
def test_a_remembered_secret_is_masked(secrets, text, expected):
    for secret in secrets:
        remember_secret(secret)
    assert redact(text) == expected


@given(secret=st.text(min_size=8), before=st.text(), after=st.text())
@example(secret="********", before="", after="")
@example(secret="\\n" * 8, before="\n", after="")
def test_any_remembered_secret_goes(secret, before, after):
    secret = secret.strip()
    if len(secret) < 8 or set(secret) <= set(MASK):
        return
    known._known = ()
    remember_secret(secret)
    assert secret not in redact(before + secret + after)


# --- secrets we can tell by their looks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sk-abcdefgh12345", "sk-***"), ("sk-proj-ab_cd-ef", "sk-***"),
        ("provided: sk-ab****************wxyz.", "provided: sk-***."), ("gsk_abcdefgh12345678", "gsk_***"),
        ("AIzaSyA-abcdefghijklmnop12345", "AIza***"), ("ghp_0123456789abcdefABCDEF", "ghp_***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("authorization: Basic dXNlcjpwdw==", "authorization: Basic ***"), ("bearer abcdef1", "bearer ***"),
        ("api_key=hunter2 next", "api_key=*** next"), ("apikey: hunter2, next", "apikey: ***, next"),
        ("{'api-key': 'hunter two', 'b': 1}", "{'api-key': '***', 'b': 1}"),
        ('{"api_key": "it\\"s", "b": 1}', '{"api_key": "***", "b": 1}'),
        ('{\\"api_key\\": \\"hunter two\\", \\"b\\": 1}', '{\\"api_key\\": \\"***\\", \\"b\\": 1}'),
        ("api_keys: ['a', 'b'] next", "api_keys: [***] next"), ("password='it\\'s' next", "password='***' next"),
        ("Password => hunter2", "Password => ***"), ('{"token": "abc"}', '{"token": "***"}'),
        ("token=abc&x=1", "token=***&x=1"),
        ("[('x-api-key', 'hunter2'), ('accept', '*')]", "[('x-api-key', '***'), ('accept', '*')]"),
        ("[(b'authorization', b'Basic x')]", "[(b'authorization', b'***')]"),
        ("postgres://u:pw@h/db", "postgres://***@h/db"), ("postgres://u:p@ss@h/db", "postgres://***@h/db"),
        ("postgres://u:p/w@h/db", "postgres://***@h/db"), ("https://token@github.com/x", "https://***@github.com/x"),
        ("https://h/v1?key=abc&b=2", "https://h/v1?key=***&b=2"),
        ("https://h/v1?a=1&X-Amz-Signature=abc#top", "https://h/v1?a=1&X-Amz-Signature=***#top"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJ", "***"),
        ("-----BEGIN PRIVATE KEY-----\nMI\n-----END PRIVATE", "-----BEGIN PRIVATE KEY-----***-----END PRIVATE"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "-----BEGIN RSA PRIVATE KEY-----***"),
    ],
)  # fmt: skip
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
        ("ok\n2026-01-01 ERROR root fake", "ok\\n2026-01-01 ERROR root fake"), ("a\r\n\tb", "a\\r\\n\\tb"),
        ("\x1b]8;;http://evil\x07", "\\u001b]8;;http://evil\\u0007"),
        ("a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd"),
        ("nul\x00 del\x7f c1\x9b", "nul\\u0000 del\\u007f c1\\u009b"),
        ("half\ud800 a character", "half\\ud800 a character"),
        ("a\u2028b\u2029c\ufeffd", "a\\u2028b\\u2029c\\ufeffd"),
        ("family 👩‍👧 and ن\u200cف", "family 👩‍👧 and ن\u200cف"),
    ],
)  # fmt: skip
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


class Torn(dict):
    def items(self):
        yield "a", 1
        raise RuntimeError("changed during iteration")


released = memoryview(b"abcd")
released.release()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((plain, plain) for plain in ("héllo 中文", 3, 0.5, True, None)),
        ([1, (2, 3)], [1, [2, 3]]), ({1}, [1]), (frozenset({2}), [2]),
        ({"a": {"b": 1}, 7: 8}, {"a": {"b": 1}, "7": 8}),
        ({None: "b", Colour.RED: "c", (1, 2): "d", Point(3): "e"},
         {"None": "b", "red": "c", "[1, 2]": "d", "{'x': 3}": "e"}),
        (Colour.RED, "red"), (Name.ANN, "ann"), (Person(name="Ann"), {"name": "Ann", "password": MASK}),
        (Point(1), {"x": 1}), (Point, repr(Point)), (dt.date(2026, 1, 2), "2026-01-02"),
        (decimal.Decimal("1.10"), "1.10"), (pathlib.PurePosixPath("a/b"), "a/b"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (float("nan"), "nan"), (float("-inf"), "-inf"), (10**6000, "<int of 19932 bits>"),
        *((odd, f"<{type(odd).__name__}>") for odd in (Broken(), Torn(a=1), released)),
    ],
    ids=lambda each: type(each).__name__,
)  # fmt: skip
def test_arguments_become_json(value, shown):
    assert rendered(value=value, after=[value], fine=1) == {"value": shown, "after": [shown], "fine": 1}


def test_secrets_are_masked_by_name_and_by_looks():
    remember_secret("remembered-secret")
    secrets = {"api_key": "abc", "OPENAI_API_KEY": "abc", "token": "abc", "api_keys": ["a", "b"]}
    plain = {"max_tokens": 100, "tokens": ["a", "b"], "password": None}
    headers = {"Authorization": "abc", "x-api-key": b"abc", "accept": "all"}
    assert rendered(headers=headers, note=f"it is {CANARY} or remembered-secret", **secrets, **plain) == {
        "headers": {"Authorization": MASK, "x-api-key": MASK, "accept": "all"},
        "note": "it is sk-*** or ***",
        **dict.fromkeys(secrets, MASK),
        **plain,
    }


def test_images_are_named_by_size(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(PNG)
    image = ImgPath(path)
    data = "data:image/png;base64," + base64.b64encode(PNG * 300).decode()
    values = [image, ImgUrl(data), data, PNG, b"abc", "data:audio/wav;base64,AAAA"]
    assert rendered(values=values)["values"] == [
        *("<image 108 B>", "<image 32 kB>", "<image 32 kB>", "<image 108 B>", "<bytes 3 B>", "<audio 3 B>")
    ]
    assert rendered(url=ImgUrl("https://user:pw@example.org/a.png"))["url"] == "https://***@example.org/a.png"
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
