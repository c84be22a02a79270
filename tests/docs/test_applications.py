"""The applications in `examples/` do what their READMEs show, from recorded answers."""

import importlib
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, clean_environment, ran

FOLDERS = sorted({path.parent for path in (ROOT / "examples").glob("*/cassette*.json")})
SHOWN = re.compile(r"```sh\n(.+?)```\n\n```text\n(.+?)```", re.DOTALL)


def environment(home: Path) -> dict[str, str]:
    return {**clean_environment(home), "PYTHONPATH": str(ROOT)}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran("-W", "error", f"{folder.name}.py", *arguments, cwd=folder, env=environment(folder))


def test_there_are_six() -> None:
    assert len(FOLDERS) == 6


@pytest.mark.heavy
@pytest.mark.parametrize(
    "folder", [each for each in FOLDERS if each.name != "fastapi_service"], ids=lambda each: each.name
)
def test_an_application_prints_what_its_readme_shows(folder: Path, tmp_path: Path) -> None:
    place = shutil.copytree(folder, tmp_path / folder.name)
    shown = SHOWN.findall((folder / "README.md").read_text("utf-8"))
    assert shown
    for commands, expected in shown:
        done = [run(place, *shlex.split(line)[2:]) for line in commands.splitlines()]
        assert "".join(each.stdout for each in done) == expected, "".join(each.stderr for each in done)


def test_a_missing_row_an_alarm_and_a_misspelt_mail_are_exit_codes(tmp_path: Path) -> None:
    misspelt = ("mail_triage", ["--answer", "no.eml", "yes"], 2)
    for name, options, code in (("pdf_table", [], 1), ("nightly_job", ["--requests", "4"], 1), misspelt):
        assert run(shutil.copytree(ROOT / "examples" / name, tmp_path / name), *options).returncode == code


def test_a_passage_is_cited_by_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("Yes, and no.\n\nno\n\n\nno\n")
    monkeypatch.syspath_prepend(str(ROOT / "examples/ask_files"))
    passages = importlib.import_module("ask_files").passages_of(tmp_path)
    assert [each.place for each in passages] == ["a.md:1", "a.md:3", "a.md:6"]


@pytest.mark.heavy
@pytest.mark.parametrize("folder", [*FOLDERS, ROOT / "examples/receipts"], ids=lambda each: each.name)
def test_an_application_takes_a_model(folder: Path) -> None:
    assert "--model" in run(folder, "--help").stdout or folder.name == "fastapi_service"
    assert '"--model"' in (folder / f"{folder.name}.py").read_text("utf-8")


def test_the_service_checks_keys_and_keeps_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    for name, file in (("CALLERS", "callers.json"), ("TRACES", "traces.sqlite")):
        monkeypatch.setenv(name, str(tmp_path / file))
    for name in [name for name in os.environ if name.startswith("SIMPLELLMFUNC_")]:
        monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(str(ROOT / "examples/fastapi_service"))
    service = importlib.import_module("fastapi_service")

    alice, bob = ({"Authorization": f"Bearer {service.add_caller(name)}"} for name in ("alice", "bob"))
    review = {"text": "Two stars. The lid of this kettle is a joke."}
    with TestClient(service.app) as client:
        assert client.post("/grades", json=review).status_code in (401, 403)
        assert client.post("/grades", json=review, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.post("/grades", json=review, headers=alice).json() == {"stars": 2, "mood": "angry"}
        assert [run["function"] for run in client.get("/runs", headers=alice).json()] == ["grade"]
        assert client.get("/runs", headers=bob).json() == []
