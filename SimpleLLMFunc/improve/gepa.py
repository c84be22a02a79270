"""GEPA as a proposer: the package's search over wordings, on the train part and within the budget.

Source: L. A. Agrawal et al., "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning" (2025).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any, TypeVar

from SimpleLLMFunc.batch import RunOptions
from SimpleLLMFunc.errors import BudgetExceeded, RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.improve.proposals import PROPOSALS, Seen, Task, Wording
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator import fill, llm_function
from SimpleLLMFunc.logger import push_debug, push_warning, shown_error
from SimpleLLMFunc.runtime import in_thread, run_sync

T = TypeVar("T")

_DOCSTRING = "docstring"
"""The component that is no field; a field is called by its path after "field "."""


class Gepa:
    """Proposes the wordings that GEPA finds: ``f.improve(cases, proposer=Gepa(llm), …)``.

    Args:
        llm: the model that reflects on what went wrong.
        questions: how often GEPA may ask the function; None is half of what the budget leaves for the search.
    """

    def __init__(self, llm: LLM_Interface, *, questions: int | None = None) -> None:
        self._ask = llm_function(llm)(_reflect)
        self._questions = questions

    async def propose(self, task: Task, *, seed: int, options: RunOptions) -> list[Wording]:  # noqa: ARG002
        """Return the best wordings, as `Proposer` has it.

        Raises:
            ConfigError: the package is not installed.
        """
        adapter = _Adapter(task)
        try:
            return await in_thread(self._search, adapter, task, seed)
        finally:
            adapter.is_over = True  # where the search was cancelled, its thread is still there

    def _search(self, adapter: _Adapter, task: Task, seed: int) -> list[Wording]:
        gepa = load_extra("gepa", "improve", purpose="Gepa")
        start = {_DOCSTRING: task.wording.docstring}
        start |= {f"field {path}": said for path, said in task.wording.descriptions.items() if said}
        left = task.questions // 2 if self._questions is None else min(self._questions, task.questions)
        numbers = list(range(task.cases))
        try:
            found = gepa.optimize(
                seed_candidate=start,
                trainset=numbers,
                valset=numbers,
                adapter=adapter,
                reflection_lm=lambda prompt: adapter.waited(lambda: self._ask(str(prompt))),
                max_metric_calls=left,
                seed=seed,
                logger=SimpleNamespace(log=push_debug),
                cache_evaluation=True,
                raise_on_exception=True,
            )
        except (BudgetExceeded, RunAborted):
            return []
        except SimpleLLMFuncError:
            raise
        except Exception as error:  # noqa: BLE001 - a package of others, whose mistake costs proposals and not the search
            push_warning(f"GEPA ended with an error, and proposes nothing: {shown_error(error)}")
            return []
        ranked = sorted(range(len(found.candidates)), key=lambda number: -found.val_aggregate_scores[number])
        return [_wording(found.candidates[number]) for number in ranked[:PROPOSALS]]


def _wording(texts: Mapping[str, str]) -> Wording:
    fields = {name.removeprefix("field "): said for name, said in texts.items() if name != _DOCSTRING}
    return Wording(texts[_DOCSTRING], fields)


class _Adapter:
    """What GEPA calls: asks the function, and tells what came of it."""

    propose_new_texts = None

    def __init__(self, task: Task) -> None:
        self._task = task
        self._context = copy_context()
        self.is_over = False

    def waited(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what `work` comes to, within the budget of the search: GEPA asks from threads that know none."""
        if self.is_over:
            raise RunAborted("the search around it has ended")
        return self._context.copy().run(lambda: run_sync(work()))

    def evaluate(self, batch: list[int], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """Ask the function, told so, for these train cases."""
        from gepa.core.adapter import EvaluationBatch  # type: ignore[import-not-found, unused-ignore]  # comes with the extra

        seen = self.waited(lambda: self._task.tried(_wording(candidate), batch))
        scores = [each.score or 0.0 for each in seen]
        return EvaluationBatch(outputs=seen, scores=scores, trajectories=seen if capture_traces else None)

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],  # noqa: ARG002 - GEPA passes it
        eval_batch: Any,
        components_to_update: list[str],
    ) -> dict[str, list[dict[str, Any]]]:
        """Return what the reflecting model is shown of the cases, for each text that is to be rewritten."""
        return {name: [_record(each) for each in eval_batch.trajectories] for name in components_to_update}


def _record(seen: Seen) -> dict[str, Any]:
    return {
        "Inputs": seen.arguments,
        "Generated Outputs": seen.answer,
        "Feedback": f"Expected: {seen.expected}. Score: {seen.score}.",
    }


async def _reflect(prompt: str) -> str:  # noqa: ARG001 - a model reads it
    """Do what the prompt says: it asks for new instructions of a language model."""
    return fill()
