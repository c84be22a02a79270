"""The bridge from synchronous code to the event loop."""

import asyncio
import contextlib
import contextvars
import gc
import threading
import traceback
import weakref

import pytest

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.runtime import sync
from SimpleLLMFunc.runtime.sync import Errands, iterate_sync, run_sync, submit
from tests.support.processes import check_script, interrupting

variable = contextvars.ContextVar("variable", default="unset")


async def value_of(result, *, after=None):
    if after is not None:
        await after
    return result


class Source:
    """An async generator that says what became of it."""

    def __init__(self, count=10**9, *, error=None, error_in_finally=None):
        self.count = count
        self.error = error
        self.error_in_finally = error_in_finally
        self.produced = 0
        self.closed = threading.Event()
        self.tasks = []

    async def __call__(self):
        self.tasks.append(asyncio.current_task())
        token = variable.set(variable.get() + "+source")
        try:
            for number in range(self.count):
                await asyncio.sleep(0)
                self.produced += 1
                yield number
            if self.error is not None:
                raise self.error
        finally:
            self.tasks.append(asyncio.current_task())
            await asyncio.sleep(0)
            # Raises if the source is closed in another context than it was started in.
            variable.reset(token)
            self.closed.set()
            if self.error_in_finally is not None:
                raise self.error_in_finally


# --- run_sync ------------------------------------------------------------------------------------------------


def test_an_exception_comes_back_with_its_traceback():
    error = LookupError("deep inside")

    async def deep_inside():
        raise error

    with pytest.raises(LookupError) as caught:
        run_sync(deep_inside())
    assert caught.value is error
    assert "deep_inside" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_a_raised_error_keeps_nothing_alive():
    class Payload:
        pass

    async def work(payload):
        raise LookupError("x")

    def failing():
        payload = Payload()
        with contextlib.suppress(LookupError):
            run_sync(work(payload))
        return weakref.ref(payload)

    gc.disable()
    try:
        gone = failing()
        run_sync(value_of(0))  # the loop has finished with the first task for certain
        assert gone() is None, "freed without the help of the garbage collector"
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt("tool"), SystemExit(3), asyncio.CancelledError("inside"), GeneratorExit()]
)
def test_what_is_no_ordinary_exception_passes_too_and_the_bridge_survives(error):
    async def work():
        raise error

    with pytest.raises(type(error)):
        run_sync(work())
    assert run_sync(value_of("still there")) == "still there"


def test_the_callers_context_variables_are_visible_inside_and_not_changed_from_there():
    async def work():
        seen = variable.get()
        variable.set("changed inside")
        await asyncio.sleep(0)
        return seen, variable.get()

    def call():
        variable.set("caller's")
        return run_sync(work()), variable.get()

    assert contextvars.copy_context().run(call) == (("caller's", "changed inside"), "caller's")


def test_on_its_own_thread_a_call_is_refused_at_once_and_the_coroutine_is_closed():
    inner = value_of(1)

    async def work():
        return run_sync(inner)

    with pytest.raises(UsageError, match="Await the asynchronous form"):
        run_sync(work())
    with pytest.raises(RuntimeError, match="cannot reuse"):
        inner.send(None)


@pytest.mark.parametrize("wrong", [None, 3, value_of, "text"])
def test_something_else_than_a_coroutine_is_refused(wrong):
    with pytest.raises(UsageError, match="takes a coroutine"):
        run_sync(wrong)


@pytest.mark.parametrize("stubborn", [False, True])
def test_an_interrupted_wait_cancels_the_work_and_does_not_wait_for_a_stubborn_one(stubborn):
    started, cancelled = threading.Event(), threading.Event()
    let_go = asyncio.Event()

    async def work():
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            if stubborn:
                await let_go.wait()
            raise

    with interrupting(started), pytest.raises(KeyboardInterrupt):
        run_sync(work())
    assert cancelled.is_set()

    async def free():
        let_go.set()

    run_sync(free())


# --- iterate_sync --------------------------------------------------------------------------------------------


def test_one_task_runs_the_source_as_far_as_asked_and_closing_waits_until_it_has_tidied_up():
    source = Source()
    items = iterate_sync(source())
    assert source.produced == 0
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    run_sync(asyncio.sleep(0.01))
    assert source.produced == 3
    items.close()
    assert source.closed.is_set()
    assert len(source.tasks) == 2
    assert source.tasks[0] is source.tasks[1]
    assert list(items) == []


def test_dropping_the_iterator_closes_the_source():
    source = Source()
    items = iterate_sync(source())
    next(items)
    del items
    assert source.closed.is_set()


def test_an_iterator_that_was_never_asked_closes_without_starting_its_source():
    source = Source()
    iterate_sync(source()).close()
    del source
    gc.collect()


def test_a_cycle_collected_on_the_bridges_own_thread_does_not_block_it():
    source = Source()

    def leave_a_cycle():
        items = iterate_sync(source())
        next(items)
        holder = {"items": items}
        holder["self"] = holder

    async def collect():
        gc.collect()

    gc.disable()
    try:
        leave_a_cycle()
        run_sync(collect())
        assert source.closed.wait(5)
    finally:
        gc.enable()


def test_an_exception_passes_with_its_traceback_after_the_items_before_it():
    error = LookupError("late")
    items = iterate_sync(Source(2, error=error)())
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(LookupError) as caught:
        next(items)
    assert caught.value is error
    assert "__call__" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert list(items) == []


def test_what_the_source_raises_while_closing_is_raised_by_close():
    items = iterate_sync(Source(error_in_finally=LookupError("on the way out"))())
    next(items)
    with pytest.raises(LookupError, match="on the way out"):
        items.close()


def test_the_source_sees_the_variables_of_the_moment_it_was_made():
    def call():
        variable.set("caller's")
        seen = []

        async def look():
            for _ in range(3):
                seen.append(variable.get())
                yield variable.set(variable.get() + "!")

        items = iterate_sync(look())
        variable.set("later")
        for _ in items:
            pass
        return seen, variable.get()

    assert contextvars.copy_context().run(call) == (["caller's", "caller's!", "caller's!!"], "later")


def test_an_async_iterator_without_aclose_will_do():
    class Plain:
        left = 2

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            self.left -= 1
            return self.left

    assert list(iterate_sync(Plain())) == [1, 0]


def test_on_its_own_thread_an_iterator_is_refused():
    async def make():
        return iterate_sync(Source()())

    async def ask(items):
        return next(items)

    with pytest.raises(UsageError):
        run_sync(make())
    items = iterate_sync(Source()())
    next(items)
    with pytest.raises(UsageError):
        run_sync(ask(items))


def test_an_interrupted_wait_for_an_item_closes_the_source():
    started, closed = threading.Event(), threading.Event()

    async def silent():
        started.set()
        try:
            await asyncio.Event().wait()
            yield 1
        finally:
            closed.set()

    with interrupting(started), pytest.raises(KeyboardInterrupt):
        next(iterate_sync(silent()))
    assert closed.is_set()


# --- the end of the interpreter ------------------------------------------------------------------------------


def test_calls_at_the_end_of_the_interpreter_work_on_a_loop_of_their_own():
    check_script(
        """
        import asyncio, atexit, contextvars
        COLOUR = contextvars.ContextVar("COLOUR", default="none")

        def late():
            COLOUR.set("late")
            print(run_sync(work()))
            stream = iterate_sync(items())
            print(next(stream), next(stream))
            stream.close()
            print(list(iterate_sync(items())))
            print(COLOUR.get())
            asyncio.run(inside())
            given_up = work()
            try:
                submit(given_up)
            except UsageError as error:
                print("refused:", "about to end" in str(error))

        async def inside():
            try:
                run_sync(work())
            except UsageError:
                print("refused inside a loop")

        atexit.register(late)      # runs after the bridge has been stopped
        from SimpleLLMFunc.errors import UsageError
        from SimpleLLMFunc.runtime.sync import iterate_sync, run_sync, submit

        async def work():
            await asyncio.sleep(0)
            colour = COLOUR.get()
            COLOUR.set("inner")
            return colour

        async def items():
            token = COLOUR.set("item")
            try:
                yield COLOUR.get()
                await asyncio.sleep(0)
                yield 2
                yield 3
            finally:
                COLOUR.reset(token)  # raises in another context
                await asyncio.sleep(0)
                print("closed")

        print(run_sync(work()))
        """,
        "none\nlate\nitem 2\nclosed\nclosed\n['item', 2, 3]\nlate\nrefused inside a loop\nrefused: True",
    )


def test_when_the_interpreter_takes_itself_apart_a_call_is_refused_at_once():
    check_script(
        """
        from SimpleLLMFunc.errors import UsageError
        from SimpleLLMFunc.runtime.sync import iterate_sync, run_sync

        async def work():
            return "worked"

        async def items():
            yield 1

        class Last:
            def __del__(self, run_sync=run_sync, iterate_sync=iterate_sync, work=work, items=items, refused=UsageError):
                for call in lambda: run_sync(work()), lambda: next(iterate_sync(items())):
                    try:
                        call()
                    except refused as error:
                        print("about to end" in str(error), flush=True)

        print(run_sync(work()), flush=True)
        kept = Last()
        kept.itself = kept
        """,
        "worked\nTrue\nTrue",
    )


def test_waking_now_and_then_as_on_windows_works_too(monkeypatch):
    monkeypatch.setattr(sync, "_WAKE_SECONDS", 0.001)

    async def slow():
        await asyncio.sleep(0.02)
        return "slow"

    assert run_sync(slow()) == "slow"


# --- submit --------------------------------------------------------------------------------------------------


async def test_submit_does_not_wait_and_can_be_awaited_from_any_loop():
    variable.set("caller's")

    async def work():
        await asyncio.sleep(0)
        return variable.get(), threading.current_thread().name

    assert await asyncio.wrap_future(submit(work())) == ("caller's", "SimpleLLMFunc")

    async def from_its_own_loop():
        return await asyncio.wrap_future(submit(work()))

    assert (await asyncio.to_thread(lambda: run_sync(from_its_own_loop())))[1] == "SimpleLLMFunc"


async def test_cancelling_what_was_submitted_cancels_the_work():
    started, ended = threading.Event(), threading.Event()

    async def work():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    future = asyncio.wrap_future(submit(work()))
    assert await asyncio.to_thread(started.wait, 20)
    future.cancel()
    assert await asyncio.to_thread(ended.wait, 20)


# --- ended from outside -----------------------------------------------------------------------------------------


def in_errands(errands, function):
    """Run `function` in a thread whose waiting `errands` can end; return the thread and what it gave or raised."""
    outcome: list[object] = []

    def work() -> None:
        try:
            outcome.append(contextvars.copy_context().run(errands.run, function))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, outcome


@pytest.mark.parametrize("how", ["run_sync", "iterate_sync"])
def test_a_wait_can_be_given_up_from_another_thread(how):
    is_waiting, is_closed = threading.Event(), threading.Event()

    async def items():
        try:
            is_waiting.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            is_closed.set()

    async def first():
        async with contextlib.aclosing(items()) as source:
            return await anext(source)

    errands = Errands()
    thread, outcome = in_errands(
        errands, (lambda: run_sync(first())) if how == "run_sync" else (lambda: list(iterate_sync(items())))
    )
    assert is_waiting.wait(5)
    errands.cancel()
    thread.join(5)
    assert isinstance(outcome[0], asyncio.CancelledError)
    assert is_closed.is_set()


def test_after_that_nothing_new_begins():
    begun: list[int] = []

    async def begin():
        begun.append(1)

    async def items():
        begun.append(2)
        yield 1

    errands = Errands()
    errands.cancel()
    for function in (lambda: run_sync(begin()), lambda: list(iterate_sync(items()))):
        thread, outcome = in_errands(errands, function)
        thread.join(5)
        assert isinstance(outcome[0], asyncio.CancelledError)
    assert begun == []


def test_what_has_ended_is_not_given_up():
    async def answer():
        return 42

    async def items():
        yield 1
        yield 2

    errands = Errands()
    thread, outcome = in_errands(errands, lambda: (run_sync(answer()), list(iterate_sync(items()))))
    thread.join(5)
    assert outcome == [(42, [1, 2])]
    assert errands._open == set()
    errands.cancel()
    assert run_sync(answer()) == 42  # others do not notice
