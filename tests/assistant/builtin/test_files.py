"""What a model names is found below the folders alone."""

from types import SimpleNamespace

import pytest

from SimpleLLMFunc.assistant.builtin.files import checked_root, find_file, given_roots
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.tools import ToolContext


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "inside"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "sub" / "文件 b.md").write_text("b")
    (root / ".hidden").write_text("h")
    (tmp_path / "secret.txt").write_text("s")
    return root


def test_names_relative_and_absolute(folder):
    root = checked_root(str(folder))
    for name in ("a.txt", "./a.txt", " a.txt ", "sub/../a.txt", str(folder / "a.txt")):
        assert find_file(name, [root]) == (root / "a.txt", root)
    assert find_file("sub/文件 b.md", [root])[0].read_text() == "b"


@pytest.mark.parametrize("name", [
    "../secret.txt", "/etc/passwd", "sub/../../secret.txt", "~/.ssh/id_rsa", "", ".", "sub", "missing.txt",
    "a.txt\x00.png", "x" * 5000, "link.txt", "links/secret.txt", "loop", "/proc/self/environ", "CON",
])  # fmt: skip
def test_what_lies_outside_is_not_found_whether_it_is_there_or_not(folder, name):
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "links").symlink_to(folder.parent)
    (folder / "loop").symlink_to(folder / "loop")
    with pytest.raises(FileNotFoundError) as caught:
        find_file(name, [checked_root(folder)], "en")
    said = str(caught.value)
    assert said.endswith("that may be read. There are: a.txt, sub/文件 b.md.")
    assert str(folder) not in said.replace(name, "")
    assert len(said) < 600


def test_the_error_tells_what_there_is(folder):
    with pytest.raises(FileNotFoundError, match=r"There are: a\.txt, sub/文件 b\.md\."):
        find_file("x", [checked_root(folder)], "en")
    with pytest.raises(FileNotFoundError, match="可读的文件：无"):
        find_file("x", [])
    for number in range(50):
        (folder / f"f{number:02}").write_text("x")
    with pytest.raises(FileNotFoundError) as caught:
        find_file("x", [checked_root(folder)])
    assert str(caught.value).count(", ") == 19


def test_the_sessions_own_folder_comes_first(folder, tmp_path):
    session = tmp_path / "session"
    session.mkdir()
    (session / "a.txt").write_text("theirs")
    context = ToolContext(context=SimpleNamespace(root=session))
    roots = given_roots(checked_root(folder), context)
    assert find_file("a.txt", roots)[0].read_text() == "theirs"
    assert find_file("sub/文件 b.md", roots)[0].read_text() == "b"


@pytest.mark.parametrize(
    "context",
    [None, ToolContext(), ToolContext(context=SimpleNamespace(root=None)), ToolContext(context={"root": "/"})],
)
def test_without_a_session_there_is_only_the_folder_given(context):
    assert given_roots(None, context) == []


def test_a_root_must_be_a_folder(folder):
    assert checked_root(None) is None
    for wrong in (folder / "a.txt", folder / "missing"):
        with pytest.raises(ConfigError, match="Give root= a folder"):
            checked_root(wrong)
