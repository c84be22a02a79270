"""The Ray cluster of a map: the connected one, the one at an address, or a new one on this machine."""

from __future__ import annotations

import io
import logging
import os
from collections import ChainMap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.logger import mask_known
from SimpleLLMFunc.runtime import Worker


def ray_package() -> Any:
    """Return Ray.

    Raises:
        ConfigError: it is not installed.
    """
    return load_extra(
        "ray", "ray", purpose='engine="ray"', advice='On one machine engine="local" does the same without it.'
    )


class _Connection:
    """The connection that the maps of this process share, and the one thread for its blocking calls.

    The processes of a cluster of ours end with the thread that has started them, so that none outlives this process.
    """

    def __init__(self) -> None:
        self.thread = Worker()
        self._maps = 0
        self._is_ours = False

    def enter(self, address: str | None) -> Any:
        """Connect where that is not done, and return Ray; each call wants one of `leave`, also where it raises.

        Raises:
            ConfigError: Ray is not installed, or no cluster answers at the address.
        """
        self._maps += 1
        ray = ray_package()
        if not ray.is_initialized():
            _connect(ray, address)
            self._is_ours = True
        return ray

    def leave(self, actors: Iterable[Any]) -> None:
        """End the actors of a map; and with the last map the connection, unless it was there before."""
        self._maps -= 1
        if actors:
            ray = ray_package()
            for actor in actors:
                with suppress(ray.exceptions.RayError):  # the cluster is gone
                    ray.kill(actor)
        if not self._maps and self._is_ours:
            self._is_ours = False
            ray_package().shutdown()


connection: Final = _Connection()


def _connect(ray: Any, address: str | None) -> None:
    told = {"log_to_driver": False, "configure_logging": False, "logging_level": "warning"}
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it would say that SIGTERM is left to the program
    try:
        if address is not None or os.environ.get("RAY_ADDRESS"):
            ray.init(address=address or "auto", **told)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it reports to no one that it runs
            # Nothing of it can be reached from another machine.
            ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **told)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = "on this machine" if address is None else f"at {address!r}"
        raise ConfigError(f"no Ray cluster can be had {where}: {error}") from error
    finally:
        logger.setLevel(level)


def shipped(value: Any, reducers: Mapping[type, Any] | None = None) -> bytes:
    """Return `value` pickled for workers, with what they could not import; `reducers` are as in `copyreg`.

    Raises:
        UsageError: it cannot be pickled, or holds a key.
    """
    file = io.BytesIO()
    try:
        pickler: Any = import_module("ray.cloudpickle").Pickler
        if reducers:
            # A pickler reads the table once, from its class.
            pickler = type("Pickler", (pickler,), {"dispatch_table": ChainMap(dict(reducers), pickler.dispatch_table)})
        pickler(file).dump(value)
    except SimpleLLMFuncError:
        raise
    except Exception as error:
        raise UsageError(f"it cannot be sent to the workers: {type(error).__name__}: {error}") from error
    text = file.getvalue().decode("latin-1")
    if mask_known(text) != text:
        raise UsageError(
            "it holds a key, and keys are not sent to workers: let the workers read it from "
            "OPENAI_API_KEY, from the provider file or from a variable of their own environment."
        )
    return file.getvalue()


def unpacked(data: bytes) -> Any:
    """Return what was `shipped`."""
    return import_module("ray.cloudpickle").loads(data)
