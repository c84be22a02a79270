"""Threads, event loops and processes, once for all rooms: work in threads, the bridge from sync code, what a fork changes.

It knows nothing of models. `sync` lets synchronous code wait for a coroutine; `threads` lets a coroutine wait for blocking
work; `loop_thread` owns the library's own event loop; `forking` renews locks and state in a forked child.
"""

from SimpleLLMFunc.runtime.blocks import block
from SimpleLLMFunc.runtime.forking import ForkSafeLock, renew_in_child
from SimpleLLMFunc.runtime.listening import (
    THIS_MACHINE,
    address_of,
    listening,
    require_web,
    serve_until_cancelled,
    unless_gone,
)
from SimpleLLMFunc.runtime.per_loop import PerLoop
from SimpleLLMFunc.runtime.sync import Errands, iterate_sync, run_sync, submit
from SimpleLLMFunc.runtime.threads import LARGE, Worker, import_module, importing, in_thread, off_loop_if_large

__all__ = [
    "LARGE", "THIS_MACHINE", "Errands", "ForkSafeLock", "PerLoop", "Worker", "address_of", "block",
    "import_module", "importing", "in_thread", "iterate_sync", "listening", "off_loop_if_large", "renew_in_child",
    "require_web", "run_sync", "serve_until_cancelled", "submit", "unless_gone",
]  # fmt: skip
