"""What all tests share: no test leaves secrets, environment models or forbidden calls behind for the next one."""

from __future__ import annotations

import gc
import os
import signal
from importlib import import_module

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("any-machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

# Under a shell that runs us in the background Ctrl-C is ignored, and what ignores it hands that on: the tests that
# interrupt a process of their own need the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest.register_assert_rewrite("SimpleLLMFunc.testing.contract", "SimpleLLMFunc.testing.probing", "tests.support")


def pytest_configure(config):
    # Nothing in the package may hold up an event loop; see there.
    guard = import_module("tests.support.loop_guard").LoopGuard()
    config.pluginmanager.register(guard, "loop-guard")


# What the collection made stays until the end: it is not looked through again and again, neither now nor in the tests.
gc.disable()


def pytest_collection_finish():
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _forget_secrets(monkeypatch):
    # The secrets of a process are masked in every later text: what one test plants would show in another's.
    known = import_module("SimpleLLMFunc.logger.known")
    monkeypatch.setattr(known, "_known", known._known)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "SIMPLELLMFUNC_MODEL"):
        monkeypatch.delenv(name, raising=False)
    # Whoever watches the shell's own programs has nothing to do with the runs of the tests.
    for name in [each for each in os.environ if each.startswith(("SIMPLELLMFUNC_TRACE", "OTEL_"))]:
        monkeypatch.delenv(name)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable():
    """Make a report something that a worker process can send: what a test logged may hold lone surrogates."""
    return encodable((yield))


def encodable(data):
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {encodable(key): encodable(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(encodable(item) for item in data)
    return data
