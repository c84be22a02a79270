"""What can be shown to a model: checked when it is made, never fetched, never more than it says."""

from __future__ import annotations

import base64
import os
import pickle
import socket
import struct
import threading
from pathlib import Path

import pytest

from SimpleLLMFunc.type import Audio, File, ImgPath, ImgUrl, Text
from SimpleLLMFunc.type.multimodal import MAX_FILE_BYTES

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0" + b"\0" * 40,
    "image/gif": b"GIF89a" + b"\0" * 40,
    "image/webp": b"RIFF\x20\0\0\0WEBPVP8 " + b"\0" * 40,
    "image/bmp": b"BM" + struct.pack("<IHHI", 100, 0, 0, 54) + struct.pack("<I", 40) + b"\0" * 40,
}
SOUNDS = {
    "wav": b"RIFF\x20\0\0\0WAVEfmt ",
    "mp3": b"ID3\x04\0\0\0\0\0\0",
    "flac": b"fLaC\0\0\0\x22",
    "ogg": b"OggS\0\x02\0\0",
    "m4a": b"\0\0\0\x20ftypM4A \0\0",
}


@pytest.fixture
def png(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    path.write_bytes(PNG)
    return path


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
        "https://example.org/cat.png",
        "http://example.org",
        "HTTPS://example.org/a?b=c#d",
        "https://[2001:db8::1]:8443/x.png",
        "data:image/png;base64,iVBORw0KGgo=",
        "https://例子.org/猫.png",
    ],
)
def test_a_url_travels_as_it_is(url):
    assert ImgUrl(url).to_part() == {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cat.png",
        "/etc/passwd",
        "file:///etc/passwd",
        "ftp://example.org/cat.png",
        "javascript:alert(1)",
        "https://",
        "https:///path",
        "https:example.org",
        "https://exa mple.org/x",
        "https://example.org/x\n",
        "https://[::1/x",
        "data:text/html,<script>",
        "data:image/png",
        None,
        3,
        b"https://example.org/x.png",
    ],
)
def test_what_is_no_address_of_an_image_is_refused(url):
    with pytest.raises(ValueError, match=r"URL|takes a str|IPv6"):
        ImgUrl(url)


@pytest.mark.parametrize("host", ["169.254.169.254", "[::ffff:169.254.169.254]", "2130706433", "localhost."])
def test_an_address_is_never_fetched(host):
    # Attack 13: nothing of ours opens a connection, so there is nothing to forge.
    assert ImgUrl(f"http://{host}/latest/meta-data").to_part()["image_url"]["url"].startswith("http://")


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
def test_the_first_bytes_say_what_an_image_is(tmp_path: Path, mime, content):
    path = tmp_path / "picture.txt"  # the name says nothing
    path.write_bytes(content)
    image = ImgPath(path)
    assert image.mime_type == mime
    prefix, _, data = image.to_part()["image_url"]["url"].partition(",")
    assert prefix == f"data:{mime};base64"
    assert base64.b64decode(data) == content


@pytest.mark.parametrize(
    "content", [b"root:x:0:0", b"BM is how this text begins, and it goes on", b"\xff\xd8", b"GIF88a"]
)
def test_a_text_called_png_is_none(tmp_path: Path, content):
    path = tmp_path / "secret.png"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="no PNG, JPEG, GIF, WebP or BMP"):
        ImgPath(path)


def test_a_missing_file_is_a_file_not_found_error(tmp_path: Path, png: Path):
    for missing in (tmp_path / "no.png", png / "below", "~/.ssh/id_rsa"):
        with pytest.raises(FileNotFoundError, match="no such file"):
            ImgPath(missing)


def test_the_system_s_files_are_no_images():
    with pytest.raises(ValueError, match="first bytes"):
        ImgPath("/etc/passwd")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/proc/self/environ", ".", ""])
def test_devices_and_folders_are_refused_unread(path):
    if not Path(path).exists():
        pytest.skip("not on this system")
    with pytest.raises(ValueError, match=r"not a regular file|is empty"):
        ImgPath(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_refused_without_waiting_for_its_writer(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.png")
    failures: list[Exception] = []

    def make():
        try:
            ImgPath(tmp_path / "pipe.png")
        except ValueError as error:
            failures.append(error)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert "not a regular file" in str(failures[0])


def test_a_file_of_3_gigabytes_is_refused_unread(tmp_path: Path):
    path = tmp_path / "huge.png"
    with path.open("wb") as stream:
        stream.write(PNG)
        stream.truncate(3 * 1024**3)
    with pytest.raises(ValueError, match=r"has 3221\.2 MB; at most 21\.0 MB"):
        ImgPath(path)
    path.unlink()


def test_20_mebibytes_are_allowed_and_one_byte_more_is_not(tmp_path: Path):
    path = tmp_path / "big.png"
    with path.open("wb") as stream:
        stream.write(PNG)
        stream.truncate(MAX_FILE_BYTES)
    image = ImgPath(path)
    with path.open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(ValueError, match="at most"):
        image.to_part()


def test_an_empty_file_is_refused(tmp_path: Path):
    (tmp_path / "empty.png").touch()
    with pytest.raises(ValueError, match="is empty"):
        ImgPath(tmp_path / "empty.png")


@pytest.mark.parametrize("path", ["a\0b.png", "x" * 5000, b"\xff\xfe"])
def test_a_name_that_cannot_be_is_refused(path):
    with pytest.raises((ValueError, FileNotFoundError)):
        ImgPath(path)


@pytest.mark.parametrize("path", [None, 3, 1.5, ["cat.png"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match="takes a path"):
        ImgPath(path)


def test_a_link_is_followed_before_anything_is_checked(tmp_path: Path, png: Path):
    secret = tmp_path / "id_rsa"
    secret.write_text("-----BEGIN OPENSSH PRIVATE KEY-----")
    (tmp_path / "x.png").symlink_to(secret)
    with pytest.raises(ValueError, match="id_rsa: its first bytes"):
        ImgPath(tmp_path / "x.png")
    (tmp_path / "good").symlink_to(png)
    assert ImgPath(tmp_path / "good").mime_type == "image/png"


def test_a_circle_of_links_is_refused(tmp_path: Path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises((ValueError, FileNotFoundError)):
        ImgPath(tmp_path / "a")


def test_root_is_checked_after_links(tmp_path: Path, png: Path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "own.png").write_bytes(PNG)
    assert ImgPath(inside / "own.png", root=inside).root == inside
    (inside / "out.png").symlink_to(png)
    for path in (png, inside / "out.png", inside / ".." / "cat.png"):
        with pytest.raises(ValueError, match="lies outside"):
            ImgPath(path, root=inside)
    # A folder whose name only begins alike is another folder.
    (tmp_path / "inside2").mkdir()
    (tmp_path / "inside2" / "a.png").write_bytes(PNG)
    with pytest.raises(ValueError, match="lies outside"):
        ImgPath(tmp_path / "inside2" / "a.png", root=inside)


def test_a_root_that_is_a_link_is_followed_too(tmp_path: Path, png: Path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert ImgPath(png, root=tmp_path / "link").to_part()


def test_a_file_swapped_for_a_link_is_not_followed(tmp_path: Path, png: Path):
    image = ImgPath(png)
    secret = tmp_path / "other.png"
    secret.write_bytes(PNG)
    png.unlink()
    png.symlink_to(secret)
    with pytest.raises(ValueError, match="has become a link"):
        image.to_part()


def test_what_has_changed_since_is_checked_again(tmp_path: Path, png: Path):
    image = ImgPath(png)
    png.write_bytes(b"no image any more")
    with pytest.raises(ValueError, match="first bytes"):
        image.to_part()
    png.unlink()
    with pytest.raises(FileNotFoundError):
        image.to_part()


def test_another_working_directory_does_not_lead_to_another_file(tmp_path: Path, png: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image = ImgPath("cat.png")
    monkeypatch.chdir("/")
    assert image.to_part()["image_url"]["url"].startswith("data:image/png")
    assert image.path == Path("cat.png")


def test_images_are_values(png: Path):
    image = ImgPath(str(png), "low")
    assert image == ImgPath(png, detail="low") != ImgPath(png)
    assert len({image, ImgPath(png, detail="low")}) == 1
    assert pickle.loads(pickle.dumps(image)).to_part() == image.to_part()
    assert repr(image) == f"ImgPath({str(png)!r}, detail='low')"
    with pytest.raises(AttributeError):
        image.detail = "high"


@pytest.mark.parametrize(("name", "content"), SOUNDS.items())
def test_sounds(tmp_path: Path, name, content):
    path = tmp_path / "sound"
    path.write_bytes(content)
    assert Audio(path).to_part() == {
        "type": "input_audio",
        "input_audio": {"data": base64.b64encode(content).decode(), "format": name},
    }


@pytest.mark.parametrize("content", [b"\xff\xfeh\0i\0", PNG, b"plain text", b"RIFF\0\0\0\0WEBP"])
def test_what_is_no_sound_is_refused(tmp_path: Path, content):
    (tmp_path / "sound.mp3").write_bytes(content)
    with pytest.raises(ValueError, match="no WAV, MP3"):
        Audio(tmp_path / "sound.mp3")


def test_an_mp3_without_a_tag_is_known_by_its_frame(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"\xff\xfb\x90\x64" + b"\0" * 20)
    assert Audio(tmp_path / "a").to_part()["input_audio"]["format"] == "mp3"


@pytest.mark.parametrize(
    ("name", "content", "mime"),
    [
        ("report", b"%PDF-1.7\n", "application/pdf"),
        ("t.docx", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("t.csv", "città;1\n".encode(), "text/csv"),
        ("t.md", b"# T", "text/markdown"),
        ("T.TXT", ("a" * 62 + "é" * 500).encode(), "text/plain"),
        ("t.txt", ("a" * 63 + "猫").encode(), "text/plain"),
    ],
)
def test_documents(tmp_path: Path, name, content, mime):
    path = tmp_path / name
    path.write_bytes(content)
    part = File(path).to_part()
    assert part["type"] == "file"
    assert part["file"]["filename"] == name
    assert part["file"]["file_data"] == f"data:{mime};base64,{base64.b64encode(content).decode()}"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("id_rsa", b"-----BEGIN"),
        ("a.zip", b"PK\x03\x04"),
        ("a.txt", b"\xff\xfe\xfd"),
        ("b.txt", b"a\0b"),
        ("x.docx", b"no"),
    ],
)
def test_what_is_no_document_is_refused(tmp_path: Path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="it is no PDF"):
        File(tmp_path / name)


def test_a_text_is_read_to_its_end_before_it_is_sent(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * 100 + b"\xff")
    with pytest.raises(ValueError, match="it is no PDF"):
        File(path)


def test_sounds_and_documents_are_values_too(tmp_path: Path):
    (tmp_path / "a.txt").write_text("hi")
    (tmp_path / "a.wav").write_bytes(SOUNDS["wav"])
    for make, path in ((File, tmp_path / "a.txt"), (Audio, tmp_path / "a.wav")):
        made = make(path, root=tmp_path)
        assert made == make(path, root=tmp_path) != make(path)
        assert pickle.loads(pickle.dumps(made)) == made
        assert repr(made) == f"{make.__name__}({str(path)!r})"
        with pytest.raises(ValueError, match="lies outside"):
            make(path, root="/usr")


def test_a_malformed_address_is_refused_without_its_password():
    for url in ("http://me:pa\u2100ssword@host/x.png", "http://me:password@[::1/x.png"):
        with pytest.raises(ValueError, match="needs a host") as caught:
            ImgUrl(url)
        assert "ssword" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_large_data_url_is_looked_at_to_its_end():
    assert ImgUrl("data:image/png;base64," + "A" * 5_000_000).url.endswith("AAA")
    with pytest.raises(ValueError, match="blanks or control"):
        ImgUrl("data:image/png;base64," + "A" * 5_000_000 + "\x7f")
