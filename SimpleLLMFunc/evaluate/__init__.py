"""Evaluations, small and honest: cases, scorers, a report with intervals, a paired comparison."""

from SimpleLLMFunc.evaluate.cases import UNKNOWN, Case, Cases, CheckedCase, checked_cases, read_cases
from SimpleLLMFunc.evaluate.comparison import Comparison, Difference, difference_of
from SimpleLLMFunc.evaluate.export import Exported, export_examples, is_changed
from SimpleLLMFunc.evaluate.report import CaseResult, EvalReport, EvaluationFailed, Outcome, Score, compare
from SimpleLLMFunc.evaluate.run import (
    Asked,
    Variants,
    checked_function,
    evaluate,
    evaluate_async,
    graded_answers,
    named_scorers,
)
from SimpleLLMFunc.evaluate.scorers import Answered, Grades, Scorer, ScorerLike, exact, fields, judge, shown_data
from SimpleLLMFunc.statistics import mcnemar_exact, mean_interval, paired_permutation, wilson_interval

__all__ = [
    "UNKNOWN", "Answered", "Case", "CaseResult", "Comparison", "Difference", "EvalReport", "EvaluationFailed",
    "Exported", "Grades", "Outcome", "Score", "Scorer", "compare", "evaluate", "evaluate_async", "exact",
    "export_examples", "fields", "judge", "mcnemar_exact", "mean_interval", "paired_permutation", "read_cases",
    "wilson_interval",
]  # fmt: skip
# For other rooms.
__all__ += [
    "Asked", "Cases", "CheckedCase", "ScorerLike", "Variants", "checked_cases", "checked_function", "difference_of",
    "graded_answers", "is_changed", "named_scorers", "shown_data",
]  # fmt: skip
