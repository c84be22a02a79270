"""llama.cpp's server inside this process: one for each weights file and options, shared by all who ask.

It speaks the OpenAI protocol on a port of the loopback address that the system picks, with a key that only this
process knows. It starts in a new thread at the first question and ends with the process.

llama.cpp's binding holds the interpreter while it reads the file (a fifth of a second for the default weights);
what can be left out then, a trial run and a search for the best layout, is left out.
"""

from __future__ import annotations

import asyncio
import atexit
import copy
import ctypes
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.request import ProxyHandler, Request, build_opener

from SimpleLLMFunc.errors import ConfigError, ConnectionFailed, RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.interface.local.weights import GGUF_MAGIC
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child

_READY_SECONDS = 120.0
"""How long a server that listens may take to load its weights."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What makes two servers different.

    Attributes:
        name: what the model is called in replies.
        path: the weights.
        threads: processors it computes on.
        context_window: tokens it reads and writes together.
        embeddings: "own" or "mean": it gives embeddings and nothing else, pooled as the weights say or as the mean over
            the tokens; empty for a model that writes.
    """

    name: str
    path: Path
    threads: int
    context_window: int
    embeddings: Literal["", "own", "mean"] = ""


class LocalServer:
    """A running server.

    Attributes:
        options: what it was started with.
        base_url: ends in ``/v1``.
        key: what a request has to show.
        client: asks it.
    """

    def __init__(self, options: ServerOptions, base_url: str, key: str, handle: Any) -> None:
        self.options = options
        self.base_url = base_url
        self.key = key
        self.client = OpenAICompatible(
            options.name,
            api_key=key,
            base_url=base_url,
            context_window=options.context_window,
            profile="local",
            # The server closes a kept connection now and then, just when it is used again.
            max_retries=2,
            retry_delay=0.02,
            _guarded=False,
        )
        self._handle = handle

    def stop(self) -> None:
        """End the server; requests under way break off."""
        # The binding has no other way than to free the object.
        self._handle = None


Prepare = Callable[[threading.Event], None]
"""Brings the weights to their place before a server starts; stops when the event is set."""


class _Start:
    """A server that is running, or on its way."""

    def __init__(self, options: ServerOptions, prepare: Prepare) -> None:
        self.waiting = 0
        self.stop = threading.Event()
        self.is_loading = False
        self.future: Future[LocalServer] = Future()
        # So that a caller who stops waiting does not cancel it for the others.
        self.future.set_running_or_notify_cancel()
        self.thread = threading.Thread(target=self._run, args=(options, prepare), daemon=True, name="local-model")

    def _run(self, options: ServerOptions, prepare: Prepare) -> None:
        try:
            prepare(self.stop)
            self._begin_loading()
            server = start_server(options)
        except BaseException as error:  # noqa: BLE001 - the waiting callers get it
            with _SERVERS.lock:
                if _SERVERS.starts.get(options) is self:
                    del _SERVERS.starts[options]
            self.future.set_exception(error)
        else:
            self.future.set_result(server)
            # This thread keeps the server until then. In a forked child, which has no such thread, it is never freed:
            # the destructor would wait for llama.cpp's own threads, which are the parent's.
            self.stop.wait()
            server.stop()

    def _begin_loading(self) -> None:
        with _SERVERS.lock:
            if self.stop.is_set():
                raise RunAborted("no call waits for the local model any more")
            self.is_loading = _SERVERS.has_loaded = True


class _Servers:
    """All servers of this process, by their options."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self.starts: dict[ServerOptions, _Start] = {}
        self.has_loaded = False
        self.is_inherited = False
        renew_in_child(self)

    @contextmanager
    def waiting(self, options: ServerOptions, prepare: Prepare) -> Iterator[Future[LocalServer]]:
        """Wait for a server, which the first one who waits starts."""
        with self.lock:
            start = self.starts.get(options)
            if start is None:
                start = self.starts[options] = _Start(options, prepare)
                start.thread.start()
            start.waiting += 1
        try:
            yield start.future
        finally:
            with self.lock:
                start.waiting -= 1
                if start.waiting == 0 and not start.future.done() and not start.is_loading:
                    # The last one who waited for a download has gone.
                    start.stop.set()
                    self.starts.pop(options, None)

    def stop(self) -> None:
        """Stop all servers of this process; the next question starts a new one."""
        with self.lock:
            starts = list(self.starts.values())
            self.starts.clear()
        # A process that has inherited llama.cpp's memory never frees its own server either.
        ending = [start for start in starts if not (self.is_inherited and start.is_loading)]
        for start in ending:
            start.stop.set()
        for start in ending:
            start.thread.join(10)

    def renew_in_child(self) -> None:
        """Start again without servers: a forked child has the memory of llama.cpp but not its threads."""
        if self.has_loaded:
            self.is_inherited = True
            _leave_without_destructors()
        self.starts = {}


def _leave_without_destructors() -> None:
    """Let this process end without the destructors of its libraries, with the exit status it has.

    llama.cpp's wait for a thread that only the parent process has, so the child would never end.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # glibc
        libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)  # noqa: SLF001 - that is the name of the C function


_SERVERS = _Servers()

atexit.register(_SERVERS.stop)


async def running_server(options: ServerOptions, prepare: Prepare) -> LocalServer:
    """Return the server with these options, and start it at the first call; the event loop goes on meanwhile.

    Args:
        options: which one.
        prepare: called in the starting thread before the weights are read.

    Raises:
        ConfigError: the weights cannot be had, or are damaged; a missing extra.
        ProviderError: the server did not start.
    """
    with _SERVERS.waiting(options, prepare) as future:
        try:
            return await asyncio.wrap_future(future)
        except SimpleLLMFuncError as error:
            # All waiting calls get the same error, and each writes the facts of its run onto it.
            raise copy.copy(error) from error


def start_server(options: ServerOptions) -> LocalServer:
    """Start a server and wait until it answers; blocks.

    Raises:
        ConfigError: `xllamacpp` is missing; the file is not there, not a model, or damaged.
        ConnectionFailed: the server started, and did not answer in time.
    """
    _read_through(options.path)
    llama = require_llama()
    key = secrets.token_urlsafe(24)
    try:
        handle = llama.Server(_params(llama, options, key))
    except RuntimeError as error:  # llama.cpp does not say why
        raise ConfigError(
            f"llama.cpp could not load {options.path}: the file is damaged, of a kind it does not know, or too large for "
            "this machine's memory. Fetch it again, or give LocalModel another .gguf file."
        ) from error
    server = LocalServer(options, f"{handle.listening_address}/v1", key, handle)
    _wait_until_ready(server)
    return server


def _read_through(path: Path) -> None:
    """Bring a weights file into memory while other threads may run; llama.cpp would keep them waiting for the disk.

    Raises:
        ConfigError: it cannot be read, or its first bytes are those of no model.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(GGUF_MAGIC))
            block = bytearray(1 << 20)
            while head == GGUF_MAGIC and file.readinto(block):
                pass
    except FileNotFoundError as error:
        raise ConfigError(
            f"there is no model file {path}. Give LocalModel the path of a .gguf file, or no argument for the default model."
        ) from error
    except OSError as error:
        raise ConfigError(f"the model file {path} cannot be read ({error.strerror or error}).") from error
    if not head:
        raise ConfigError(f"the model file {path} is empty. Fetch it again, or give LocalModel another .gguf file.")
    if head != GGUF_MAGIC:
        raise ConfigError(
            f"{path} is not a model file: it does not begin like a GGUF file. Give LocalModel the path of a .gguf file."
        )


def require_llama() -> Any:
    """Return the binding to llama.cpp.

    Raises:
        ConfigError: it is not installed.
    """
    return load_extra("xllamacpp", "local", purpose="LocalModel")


@cache
def reads_guidance() -> bool:
    """Whether llama.cpp takes llguidance's grammars, by how it was built; where it is not installed, as if it did."""
    try:
        return str(require_llama().json_schema_to_grammar("{}")).startswith("%llguidance")
    except ConfigError:
        return True


def _params(llama: Any, options: ServerOptions, key: str) -> Any:
    params = llama.CommonParams()
    params.model.path = str(options.path)
    params.model_alias = {options.name}
    params.n_ctx = options.context_window
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.n_gpu_layers = 0
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system picks a free one
    params.api_keys = [key]
    # No web page may use the server, and it never goes out by itself.
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = -1  # not a word on stdout or stderr
    # Prompts of finished requests are not kept; by default up to 8 GiB would be.
    params.cache_ram_mib = 0
    params.warmup = False
    params.fit_params = False
    if options.embeddings:
        params.embedding = True
        if options.embeddings == "mean":
            params.pooling_type = llama.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        params.n_batch = params.n_ubatch = options.context_window  # a text is read in one piece
    return params


def _wait_until_ready(server: LocalServer) -> None:
    until = time.monotonic() + _READY_SECONDS
    address = server.base_url.removesuffix("/v1") + "/health"
    health = Request(address, headers={"Authorization": f"Bearer {server.key}"})  # noqa: S310 - it is http
    asking = build_opener(ProxyHandler({}))  # no proxy of the environment reaches this machine's own loopback
    problem = ""
    while time.monotonic() < until:
        try:
            with asking.open(health, timeout=5):
                return
        except OSError as error:  # nothing listens yet, or 503: it is still loading
            problem = str(error)
        time.sleep(0.02)
    raise ConnectionFailed(
        server.options.name, reason=f"the local server was not ready after {_READY_SECONDS:g} s: {problem}"
    )
