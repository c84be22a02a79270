"""The Ray cluster that a map runs on: the one that is connected, the one that an address names, or one on this machine."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import threading
from collections import ChainMap
from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from typing import Any

from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.logger import mask_known
from SimpleLLMFunc.runtime import in_thread

__all__ = ["connected", "packed", "ray_package", "shipped", "unpacked"]

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
"""For a cluster of ours, where nobody has said otherwise: it tells nobody that it runs."""


def ray_package(name: str = "ray") -> Any:
    """Return Ray, or a module of it, or one that comes with it.

    Raises:
        ConfigError: it is not installed.
    """
    return load_extra(
        name, "ray", purpose='engine="ray"', advice='On one machine engine="local" does the same without it.'
    )


@asynccontextmanager
async def connected(address: str | None) -> AsyncGenerator[Any, None]:
    """Give Ray, connected to a cluster; what was not there before is gone after the block.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers at the address.
    """
    home = _Home(address)
    home.start()
    try:
        # A thread that connects cannot be stopped; it sees afterwards that nobody wants it any more.
        yield await asyncio.wrap_future(home.ray)
    finally:
        home.is_over.set()
        if home.ray.done() and not home.ray.cancelled():
            await asyncio.shield(in_thread(home.join))


class _Home(threading.Thread):
    """The thread that a cluster of ours lives with: its processes end with the thread that has started them."""

    def __init__(self, address: str | None) -> None:
        super().__init__(name="SimpleLLMFunc-ray", daemon=True)
        self._address = address
        self.ray: Future[Any] = Future()
        self.is_over = threading.Event()

    def run(self) -> None:
        """Connect, and end the connection when it is over."""
        try:
            ray, is_ours = _connect(self._address)
        except BaseException as error:  # noqa: BLE001 - raised where Ray is waited for
            if not self.ray.cancelled():
                self.ray.set_exception(error)
            return
        try:
            with suppress(InvalidStateError):  # it was given up
                self.ray.set_result(ray)
            self.is_over.wait()
        finally:
            if is_ours:
                ray.shutdown()


def _connect(address: str | None) -> tuple[Any, bool]:
    """Return Ray, and whether the connection is ours to end."""
    ray = ray_package()
    if ray.is_initialized():
        return ray, False
    told = {"log_to_driver": False, "configure_logging": False, "logging_level": "warning"}
    logger = logging.getLogger("ray")
    level = logger.level
    # It would say that SIGTERM does not end it: the process that it lives in does.
    logger.setLevel(logging.ERROR)
    try:
        if address is not None or os.environ.get("RAY_ADDRESS"):
            ray.init(address=address or "auto", **told)
        else:
            with _environment(_QUIET):
                # Nothing of it can be reached from another machine.
                ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **told)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = "on this machine" if address is None else f"at {address!r}"
        raise ConfigError(f"no Ray cluster can be had {where}: {error}") from error
    finally:
        logger.setLevel(level)
    return ray, True


@contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    added = [name for name in wanted if name not in os.environ]
    os.environ.update({name: wanted[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


# --- what goes there and back --------------------------------------------------------------------------------


def packed(value: Any, reducers: Mapping[type, Any] | None = None) -> bytes:
    """Return `value` pickled, with what another process could not import; `reducers` are as in `copyreg`."""
    file = io.BytesIO()
    pickler: Any = import_module("ray.cloudpickle").Pickler
    if reducers:
        # A pickler reads the table once, from its class.
        pickler = type("Pickler", (pickler,), {"dispatch_table": ChainMap(dict(reducers), pickler.dispatch_table)})
    pickler(file).dump(value)
    return file.getvalue()


def unpacked(data: bytes) -> Any:
    """Return what was `packed`."""
    return import_module("ray.cloudpickle").loads(data)


def shipped(value: Any, reducers: Mapping[type, Any] | None = None) -> bytes:
    """Return `value` pickled, for workers.

    Raises:
        UsageError: it cannot be pickled, or holds a key.
    """
    try:
        data = packed(value, reducers)
    except SimpleLLMFuncError:
        raise
    except Exception as error:
        raise UsageError(f"it cannot be sent to the workers: {type(error).__name__}: {error}") from error
    text = data.decode("latin-1")
    if mask_known(text) != text:
        raise UsageError(
            "a key would travel to the workers with it, and keys stay where they are: let the workers read it from "
            "OPENAI_API_KEY, from the provider file or from a variable of their own environment."
        )
    return data
