"""The table of names: written in one place, and spelled as the conventions have it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from SimpleLLMFunc.observability.otel import semconv
from SimpleLLMFunc.observability.otel.semconv import Attribute, Metric

PACKAGE = Path(semconv.__file__).parents[2]
gen_ai_attributes = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
gen_ai_metrics = pytest.importorskip("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")
NOT_CONVENTIONAL = {"gen_ai.usage.cost"}
"""Read by Langfuse and Logfire, and in no conventions."""


IS_OLD = not hasattr(gen_ai_attributes, "GEN_AI_REQUEST_STREAM")


def values(table: type) -> dict[str, str]:
    return {name: value for name, value in vars(table).items() if not name.startswith("_")}


@pytest.mark.skipif(IS_OLD, reason="the installed list of names is older than the conventions that are meant")
@pytest.mark.parametrize(("table", "module"), [(Attribute, gen_ai_attributes), (Metric, gen_ai_metrics)])
def test_the_names_are_spelled_as_in_the_conventions(table, module):
    known = {value for name, value in vars(module).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
    ours = {value for value in values(table).values() if value.startswith("gen_ai.")} - NOT_CONVENTIONAL
    assert ours
    assert ours <= known


def test_no_name_is_written_elsewhere_and_nothing_incubating_is_imported():
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "semconv" not in text.replace("observability.otel.semconv", "") or path.name == "semconv.py", path
        if path.name != "semconv.py":
            assert not re.search(r"""["'](gen_ai|openinference)\.""", text), path
