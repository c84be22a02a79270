"""Evaluations, small and honest: cases, scorers, a report with intervals, a paired comparison."""

from SimpleLLMFunc.evaluate.cases import UNKNOWN, Case, read_cases
from SimpleLLMFunc.evaluate.comparison import Comparison, Difference
from SimpleLLMFunc.evaluate.export import Exported, export_examples, is_changed
from SimpleLLMFunc.evaluate.report import CaseResult, EvalReport, EvaluationFailed, Outcome, Score, compare
from SimpleLLMFunc.evaluate.run import evaluate, evaluate_async
from SimpleLLMFunc.evaluate.scorers import Answered, Grades, Scorer, exact, fields, judge
from SimpleLLMFunc.statistics import mcnemar_exact, mean_interval, paired_permutation, wilson_interval

__all__ = [
    "UNKNOWN", "Answered", "Case", "CaseResult", "Comparison", "Difference", "EvalReport", "EvaluationFailed",
    "Exported", "Grades", "Outcome", "Score", "Scorer", "compare", "evaluate", "evaluate_async", "exact",
    "export_examples", "fields", "judge", "mcnemar_exact", "mean_interval", "paired_permutation", "read_cases",
    "wilson_interval",
]  # fmt: skip
__all__ += ["cases", "comparison", "is_changed", "run", "scorers"]  # for other rooms
