import base64
import hashlib
import multiprocessing

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.testing.cassette_file import Exchange, plain_request, read_cassette, scrubbed, update_cassette

HELLO = [{"role": "user", "content": "hello"}]


def exchange(text="hello", test="t", **outcome):
    request = plain_request([{"role": "user", "content": text}])
    return Exchange("m:f", "v1", "gpt", test, request, outcome or {"reply": {"choices": []}})


@pytest.mark.parametrize(
    "text",
    ["one line", "two\nlines", "\n", "a\r\nb", "\ud800\n\udfff", "雨\n", '{"|": ["x"]}', "", "tab\t\x00\n\u2028"],
)
def test_texts_come_back(tmp_path, text):
    path = tmp_path / "a.json"
    update_cassette(path, [exchange(text, reply={"text": text, "deep": [{"x": text}]})])
    (found,) = read_cassette(path)
    assert found.request["messages"][0]["content"] == text
    assert found.outcome["reply"] == {"text": text, "deep": [{"x": text}]}
    path.read_bytes().decode("utf-8")
    assert ("\\n" in path.read_text(encoding="utf-8")) is False


@pytest.mark.parametrize(
    "data", [{"|": "x"}, {"|": ["a", "b"]}, {"||": 1, "|": 2}, {"|": ["a"], "b": 1}, {"|x": ["|"]}, {"a": {"|": [1]}}]
)
def test_what_looks_like_lines_and_is_none_comes_back(tmp_path, data):
    path = tmp_path / "a.json"
    update_cassette(path, [exchange(reply=data)])
    assert read_cassette(path)[0].outcome["reply"] == data


def test_the_key_is_that_of_the_question():
    def key(messages=HELLO, tools=None, response_format=None, model="m", **params):
        request = plain_request(messages, tools=tools, response_format=response_format, **params)
        return Exchange("f", "v", model, "t", request).key

    assert key() == key([dict(HELLO[0])])
    assert key(temperature=None) == key()
    different = [
        key(), key([{"role": "user", "content": "hello!"}]), key([{"role": "system", "content": "hello"}]), key(model="n"),
        key(temperature=0.1), key(response_format={"type": "json_object"}), key(tools=[{"function": {"name": "x"}}]),
        key([*HELLO, *HELLO]),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    other = Exchange("another", "v2", "m", "another", plain_request(HELLO))
    assert other.key == key()


def test_ids_of_calls_do_not_count():
    def history(one, two):
        call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
        return [
            *HELLO, {"role": "assistant", "content": None, "tool_calls": [{**call, "id": one}, {**call, "id": two}]},
            {"role": "tool", "tool_call_id": two, "content": "2"},
            {"role": "tool", "tool_call_id": one, "content": "1"},
        ]  # fmt: skip

    asked = plain_request(history("abc", "xyz"))
    assert asked == plain_request(history("1", "2"))
    assert [message.get("tool_call_id") for message in asked["messages"][2:]] == ["call_2", "call_1"]
    given = history("abc", "xyz")
    assert plain_request([*given[:-1], {**given[-1], "is_error": True}]) == asked  # recordings of 1.0 know no mark
    plain_request(given)
    assert given == history("abc", "xyz")


def test_files_are_hashes():
    content = b"\x89PNG" + bytes(100)
    data = base64.b64encode(content).decode()
    sha = hashlib.sha256(content).hexdigest()
    assert scrubbed(f"data:image/png;base64,{data}") == f"data:image/png;sha256={sha} (104 bytes)"
    assert scrubbed({"data": data, "format": "wav"}) == {"data": f"sha256={sha} (104 bytes)", "format": "wav"}
    assert scrubbed("data: base64, as we say") == "data: base64, as we say"
    assert scrubbed("https://example.com/a.png") == "https://example.com/a.png"


def test_headers_lose_their_values():
    request = plain_request(HELLO, extra_headers={"X-B": "b", "X-A": "a"}, seed=1)
    assert request["params"] == {"extra_headers": {"X-A": "***", "X-B": "***"}, "seed": 1}


def test_replacing_one_test(tmp_path):
    path = tmp_path / "a.json"
    update_cassette(path, [exchange("1", "b"), exchange("2", "a")])
    update_cassette(path, [exchange("3", "b")], replacing="b")
    kept = [(each.test, each.request["messages"][0]["content"]) for each in read_cassette(path)]
    assert kept == [("a", "2"), ("b", "3")]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"[" * 20_000, b"{}", b'{"cassette": 2, "exchanges": []}', b'{"cassette": 1, "exchanges": [{}]}', b"\xff\xfe",
     b'{"cassette": 1, "exchanges": 3}', b'{"cassette": 1, "exchanges": [3]}'],
)  # fmt: skip
def test_what_is_no_cassette(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"a\.json"):
        read_cassette(path)
    with pytest.raises(ConfigError, match=r"a\.json"):
        update_cassette(path, [exchange()])
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be written"):
        update_cassette(tmp_path / "file" / "a.json", [exchange()])


def _add(path, number):
    for one in range(5):
        update_cassette(path, [exchange(f"{number} {one}", test=f"test {number}")])


@pytest.mark.heavy
def test_many_processes_on_one_file(tmp_path):
    path = tmp_path / "a.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add, args=(path, number)) for number in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join(50)
        assert each.exitcode == 0
    texts = [each.request["messages"][0]["content"] for each in read_cassette(path)]
    assert texts == [f"{number} {one}" for number in range(4) for one in range(5)]
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
