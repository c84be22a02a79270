"""The notebook among the examples runs from top to bottom in a real kernel."""

import pytest

from tests.docs.pages import ROOT

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(180)]


# The kernel's client still sets up its sockets in ways that the newest versions of what it stands on discourage.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_tour_runs(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    notebook = nbformat.read(ROOT / "examples/tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "kept without what it printed"
    nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3").execute(cwd=str(tmp_path))
    shown = [
        str(output.get("data", {}).get("text/html") or output.get("data", {}).get("text/plain") or output.get("text"))
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    ]
    text = "\n".join(shown)
    assert "Review(product='kettle', stars=2, mood='angry')" in text
    assert "[34, 24, 34]" in text
    assert "Once upon a time" in text.replace("|", "")
