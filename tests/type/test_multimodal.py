"""What can be shown to a model: checked when it is made, never fetched, never more than it says."""

from __future__ import annotations

import base64
import os
import pickle
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from SimpleLLMFunc.type import MAX_FILE_BYTES, Audio, File, ImgPath, ImgUrl, Text

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
IMAGES = {
    "image/png": PNG, "image/jpeg": b"\xff\xd8\xff\xe0", "image/gif": b"GIF89a", "image/webp": b"RIFF\x20\0\0\0WEBPVP8 ",
    "image/bmp": b"BM" + struct.pack("<IHHI", 100, 0, 0, 54) + struct.pack("<I", 40),
}  # fmt: skip
SOUNDS = [
    ("wav", b"RIFF\x20\0\0\0WAVEfmt "), ("mp3", b"ID3\x04\0\0\0\0\0\0"), ("flac", b"fLaC\0\0\0\x22"),
    ("mp3", b"\xff\xfb\x90\x64" + b"\0" * 20),  # without a tag, by its frame
    ("ogg", b"OggS\0\x02\0\0"), ("m4a", b"\0\0\0\x20ftypM4A \0\0"),
]  # fmt: skip


DOCUMENTS = [
    ("report", b"%PDF-1.7\n", "application/pdf"), ("t.csv", "città;1\n".encode(), "text/csv"),
    ("t.docx", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("t.md", b"# T", "text/markdown"), ("T.TXT", "猫".encode(), "text/plain"),
]  # fmt: skip


@pytest.fixture
def write(tmp_path: Path):
    """Writes a file, and returns its path."""

    def written(content: bytes, name: str = "a") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    return written


@pytest.fixture
def png(write) -> Path:
    return write(PNG, "cat.png")


# --- text and addresses ------------------------------------------------------------------------------------


def test_text_is_a_part_without_a_name():
    assert Text("hello").to_part() == {"type": "text", "text": "hello"}
    assert Text("a") == Text("a") != Text("b")
    assert len(repr(Text("x" * 10_000))) < 100
    with pytest.raises(ValueError, match="takes a str, not int"):
        Text(3)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/cat.png", "http://example.org", "HTTPS://example.org/a?b=c#d",
        "https://[2001:db8::1]:8443/x.png", "https://例子.org/猫.png", "data:image/png;base64," + "A" * 5_000_000,
        # Attack 13: nothing of ours opens a connection, so there is nothing to forge.
        "http://169.254.169.254/x", "http://[::ffff:169.254.169.254]/x", "http://2130706433/x", "http://localhost./x",
    ],
    ids=lambda url: url[:40],
)  # fmt: skip
def test_a_url_travels_as_it_is(url):
    assert ImgUrl(url).to_part() == {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize(
    "url",
    [
        "", "cat.png", "/etc/passwd", "file:///etc/passwd", "ftp://example.org/cat.png", "javascript:alert(1)",
        "https://", "https:///path", "https:example.org", "https://exa mple.org/x", "https://example.org/x\n",
        "https://[::1/x", "data:text/html,<script>", "data:image/png", None, 3, b"https://example.org/x.png",
        "data:image/png;base64," + "A" * 5_000_000 + "\x7f", "http://me:pa\u2100ssword@host/x.png",
        "http://me:password@[::1/x.png", "data:image/png,abc", "data:image/png;base64,", "data:image/png;base64,@@",
    ],
    ids=lambda url: repr(url)[-40:],
)  # fmt: skip
def test_what_is_no_address_of_an_image_is_refused_without_its_password(url):
    with pytest.raises(ValueError, match=r"URL|takes a str") as caught:
        ImgUrl(url)
    assert "ssword" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_listener_gets_no_hit():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        image = ImgUrl(f"http://127.0.0.1:{listener.getsockname()[1]}/cat.png")
        image.to_part()
        repr(image)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_detail_goes_out_unless_it_is_auto(png: Path):
    assert ImgUrl("https://e.org/x", "low").to_part()["image_url"] == {"url": "https://e.org/x", "detail": "low"}
    assert "detail" not in ImgUrl("https://e.org/x", detail="auto").to_part()["image_url"]
    assert ImgPath(png, detail="high").to_part()["image_url"]["detail"] == "high"
    for make in (lambda: ImgUrl("https://e.org/x", "best"), lambda: ImgPath(png, detail="LOW")):
        with pytest.raises(ValueError, match="detail must be one of auto, low, high"):
            make()


def test_a_repr_shows_neither_content_nor_what_may_be_a_key():
    shown = repr(ImgUrl("https://user:sk-CANARY@example.org/x.png?sig=CANARY&key=1"))
    assert shown == "ImgUrl('https://example.org/x.png?…')"
    long = repr(ImgUrl("data:image/png;base64," + "A" * 40_000, detail="low"))
    assert long == "ImgUrl('data:image/png;base64,<30 kB>', detail='low')"


# --- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mime", "content"), IMAGES.items())
def test_the_first_bytes_say_what_an_image_is(write, mime, content):
    content += b"\0" * 40
    image = ImgPath(write(content, "picture.txt"))  # the name says nothing
    assert image.mime_type == mime
    data = base64.b64encode(content).decode()
    assert image.to_part()["image_url"]["url"] == f"data:{mime};base64,{data}"


def test_sounds_and_documents(write):
    for name, content in SOUNDS:
        said = {"data": base64.b64encode(content).decode(), "format": name}
        assert Audio(write(content)).to_part() == {"type": "input_audio", "input_audio": said}
    for name, content, mime in DOCUMENTS:
        data = f"data:{mime};base64,{base64.b64encode(content).decode()}"
        part = {"type": "file", "file": {"filename": name, "file_data": data}}
        assert File(write(content, name)).to_part() == part


@pytest.mark.parametrize(
    ("make", "name", "content", "said"),
    [
        *((ImgPath, "secret.png", content, "no PNG, JPEG, GIF, WebP or BMP")
          for content in (b"root:x:0:0", b"BM is how this text begins, and it goes on", b"\xff\xd8", b"GIF88a")),
        *((Audio, "sound.mp3", content, "no WAV, MP3")
          for content in (b"\xff\xfeh\0i\0", PNG, b"plain text", b"RIFF\0\0\0\0WEBP", b"\xff\xfb")),
        *((File, name, content, "it is no PDF") for name, content in (
            ("id_rsa", b"-----BEGIN"), ("a.zip", b"PK\x03\x04"), ("a.txt", b"a" * 100 + b"\xff"), ("b.txt", b"a\0b"),
            ("x.docx", b"no"))),
        (ImgPath, "empty.png", b"", "is empty"),
    ],
)  # fmt: skip
def test_what_is_none_is_refused(write, make, name, content, said):
    with pytest.raises(ValueError, match=said):
        make(write(content, name))


def test_a_missing_file_is_a_file_not_found_error_and_no_path_a_value_error(tmp_path: Path, png: Path):
    for missing in (tmp_path / "no.png", png / "below", "~/.ssh/id_rsa"):
        with pytest.raises(FileNotFoundError, match="no such file"):
            ImgPath(missing)
    for name in ("a\0b.png", "x" * 5000, b"\xff\xfe"):
        with pytest.raises((ValueError, FileNotFoundError)):
            ImgPath(name)
    for wrong in (None, 3, 1.5, ["cat.png"]):
        with pytest.raises(ValueError, match="takes a path"):
            ImgPath(wrong)


@pytest.mark.parametrize("path", ["/etc/passwd", "/dev/zero", "/dev/null", "/proc/self/environ", ".", ""])
def test_what_the_system_holds_is_no_image_and_devices_are_not_read(path):
    if not Path(path).exists():
        pytest.skip("not on this system")
    with pytest.raises(ValueError, match=r"not a regular file|is empty|first bytes"):
        ImgPath(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_refused_without_waiting_for_its_writer(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.png")
    # A thread that waits for ever would keep this process from ending.
    code = "import sys; from SimpleLLMFunc import ImgPath; ImgPath(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "pipe.png")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert "not a regular file" in done.stderr


def test_20_mebibytes_are_allowed_and_one_byte_more_is_not(png: Path):
    os.truncate(png, MAX_FILE_BYTES)
    image = ImgPath(png)
    os.truncate(png, MAX_FILE_BYTES + 1)
    with pytest.raises(ValueError, match="at most"):
        image.to_part()
    os.truncate(png, 3 * 1024**3)  # refused unread
    with pytest.raises(ValueError, match=r"has 3,221,225,472 bytes; at most 20,971,520 \(20 MiB\)"):
        ImgPath(png)


def test_a_link_is_followed_before_anything_is_checked(tmp_path: Path, png: Path, write):
    (tmp_path / "x.png").symlink_to(write(b"-----BEGIN OPENSSH PRIVATE KEY-----", "id_rsa"))
    with pytest.raises(ValueError, match="id_rsa: its first bytes"):
        ImgPath(tmp_path / "x.png")
    (tmp_path / "good").symlink_to(png)
    assert ImgPath(tmp_path / "good").mime_type == "image/png"
    (tmp_path / "b").symlink_to(tmp_path / "c")
    (tmp_path / "c").symlink_to(tmp_path / "b")
    with pytest.raises((ValueError, FileNotFoundError)):
        ImgPath(tmp_path / "b")


def test_root_is_checked_after_links(tmp_path: Path, png: Path, write):
    inside = write(PNG, "inside/own.png").parent
    assert ImgPath(inside / "own.png", root=inside).root == inside
    (inside / "out.png").symlink_to(png)
    # A folder whose name only begins alike is another folder.
    for path in (png, inside / "out.png", inside / ".." / "cat.png", write(PNG, "inside2/a.png")):
        with pytest.raises(ValueError, match="lies outside"):
            ImgPath(path, root=inside)
    (tmp_path / "link").symlink_to(tmp_path)
    assert ImgPath(png, root=tmp_path / "link").to_part()


def test_what_has_changed_since_is_checked_again(png: Path, write):
    image = ImgPath(png)
    png.write_bytes(b"no image any more")
    with pytest.raises(ValueError, match="first bytes"):
        image.to_part()
    png.unlink()
    with pytest.raises(FileNotFoundError):
        image.to_part()
    png.symlink_to(write(PNG, "other.png"))
    with pytest.raises(ValueError, match="has become a link"):
        image.to_part()


def test_files_are_values_and_another_working_directory_does_not_lead_to_another_file(
    tmp_path: Path, png: Path, write, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    image = ImgPath("cat.png")
    monkeypatch.chdir("/")
    assert image.to_part()["image_url"]["url"].startswith("data:image/png")
    assert image.path == Path("cat.png")
    image = ImgPath(str(png), "low")
    assert image == ImgPath(png, detail="low") != ImgPath(png)
    assert len({image, ImgPath(png, detail="low")}) == 1
    assert repr(image) == f"ImgPath({str(png)!r}, detail='low')"
    with pytest.raises(AttributeError):
        image.detail = "high"
    for make, path in ((ImgPath, png), (File, write(b"hi", "a.txt")), (Audio, write(b"fLaC", "a.wav"))):
        made = make(path, root=tmp_path)
        assert made == make(path, root=tmp_path) != make(path)
        assert pickle.loads(pickle.dumps(made)).to_part() == made.to_part()
        assert repr(made) == f"{make.__name__}({str(path)!r})"
        with pytest.raises(ValueError, match="lies outside"):
            make(path, root="/usr")
