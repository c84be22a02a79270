"""The page about clusters: its blocks run as they stand, those too that want more than is installed for the other pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

RUN = """
import sys
from pathlib import Path
from tests.docs.pages import blocks
import __main__
for block in blocks(Path(sys.argv[1]).read_text(encoding="utf-8")):
    print(f"--- {block.line}", flush=True)
    exec(compile("\\n" * (block.line - 1) + block.code, sys.argv[1], "exec", dont_inherit=True), vars(__main__))
"""


@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_every_block_of_the_page_runs(tmp_path) -> None:
    pytest.importorskip("ray.data")
    pytest.importorskip("dask.bag")
    page = ROOT / "docs" / "how-to" / "map-cluster.md"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    # Ray's workers step back behind every other process: next to other tests they would get no time.
    environment |= {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    out, err = tmp_path / "out.txt", tmp_path / "err.txt"  # no pipe, which another process could hold open
    with out.open("wb") as stdout, err.open("wb") as stderr:
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(page)],
            cwd=tmp_path,
            env=environment,
            stdout=stdout,
            stderr=stderr,
            timeout=360,
            check=False,
        )
    assert done.returncode == 0, err.read_text()[-3000:]
    shown = [line for line in out.read_text().splitlines() if not line.startswith("---")]
    assert shown == [
        "['good', 'bad', 'good'] 3 asked",
        "['good', 'bad', 'good'] 3 asked",
        "3 asked, 0 failed",
        "bad",
        "('Review 99, cold', 'bad')",
        "4 checkpoints",
    ]
