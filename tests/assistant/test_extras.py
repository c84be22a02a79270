"""A missing extra is said with the line that installs it."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.assistant.extras import check_extra, load_extra
from SimpleLLMFunc.errors import ConfigError


def test_what_is_there_is_loaded():
    check_extra("json", "files", purpose="x")
    assert load_extra("json.decoder", "files", purpose="x").__name__ == "json.decoder"


@pytest.mark.parametrize("use", [check_extra, load_extra])
def test_what_is_missing_names_the_line(use):
    with pytest.raises(
        ConfigError,
        match=r'^reading tea leaves needs `no_such_module`, .*: pip install "SimpleLLMFunc\[tea\]"$',
    ):
        use("no_such_module", "tea", purpose="reading tea leaves")


def test_what_breaks_while_it_loads_is_as_good_as_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_module_of_a_test.py").write_text("import no_such_module_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    check_extra("broken_module_of_a_test", "tea", purpose="x")
    with pytest.raises(ConfigError) as caught:
        load_extra("broken_module_of_a_test", "tea", purpose="x")
    assert isinstance(caught.value.__cause__, ImportError)
