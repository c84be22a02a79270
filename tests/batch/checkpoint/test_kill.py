"""A map that is killed at random instants, and one with very many rows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.batch.checkpoint.kill import ROOT, killed_until_done

CONCURRENCY = 50


@pytest.mark.heavy
@pytest.mark.timeout(900)
async def test_killed_at_random_instants_until_it_is_done(tmp_path) -> None:
    outcome = await killed_until_done(1_000, 25, CONCURRENCY, latency=0.1, seed=9, folder=tmp_path)
    assert outcome.is_as_promised(CONCURRENCY)
    assert outcome.paid_again <= outcome.kills * CONCURRENCY
    assert outcome.paid >= outcome.rows
    assert outcome.kills >= 20  # a run may end before its turn comes


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_more_rows_take_no_more_memory(has_checkpoint, tmp_path) -> None:
    taken = {}
    for rows in (20_000, 60_000):
        checkpoint = [str(tmp_path / f"{rows}.sqlite")] if has_checkpoint else []
        command = [sys.executable, "-m", "tests.batch.checkpoint.grow", str(rows), *checkpoint]
        taken[rows] = json.loads(subprocess.check_output(command, cwd=ROOT))["megabytes"]
    # A row may leave its number behind and a little more: 40,000 rows more, at 100 bytes each, and some slack.
    assert taken[60_000] - taken[20_000] < 4 + 8
