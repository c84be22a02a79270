"""Threads, event loops and processes, once for all rooms: work in threads, the bridge from sync code, what a fork changes.

It knows nothing of models. `sync` lets synchronous code wait for a coroutine; `threads` lets a coroutine wait for blocking
work; `loop_thread` owns the library's own event loop; `forking` renews locks and state in a forked child.
"""
