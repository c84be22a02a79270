"""Attacks 13 and 14: no address of an image is ever fetched, and no file leaves that is none that was meant."""

import asyncio
import base64
import json
import os
import socket
from pathlib import Path

import pytest

from SimpleLLMFunc import Audio, File, ImgPath, ImgUrl, OpenAICompatible, llm_chat, llm_function
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing import tool_calls as calling
from tests.support.server import LoopbackServer

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 100

# --- 13: addresses ----------------------------------------------------------------------------------------


@pytest.fixture
async def listener():
    """Somebody who listens, and whom nobody must call."""
    hits: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hits.append(await reader.read(1000))
        writer.write(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], hits


@pytest.fixture
def lookups(monkeypatch):
    """Names that somebody wanted to resolve: even that would tell an attacker that we are here."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host, *arguments, **options):
        asked.append(str(host))
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def addresses(port: int) -> list[str]:
    hosts = [
        "127.0.0.1", "localhost", "localhost.", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[::7f00:1]", "0.0.0.0", "127.0.0.1.nip.io",
    ]  # fmt: skip
    metadata = [
        "http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://[64:ff9b::a9fe:a9fe]/",
        "http://[::a9fe:a9fe]/", "http://metadata.google.internal/computeMetadata/v1/", "http://2852039166/",
    ]  # fmt: skip
    return [f"http://{host}:{port}/a.png" for host in hosts] + metadata


async def test_attack_13_no_address_is_fetched_or_even_looked_up(listener, lookups):
    port, hits = listener
    async with LoopbackServer() as server:
        llm = OpenAICompatible("m", base_url=server.base_url)
        lookups.clear()

        def show(where: str) -> list[ImgUrl]:
            """Show."""
            return [ImgUrl(each) for each in addresses(port)]

        @llm_function(llm, toolkit=[show])
        async def describe(picture: ImgUrl, others: list[ImgUrl]) -> str:
            """Describe."""

        @llm_chat(llm)
        async def chat(history: list, message: str, picture: ImgUrl):
            """Talk."""
            yield

        given = [ImgUrl(address) for address in addresses(port)]
        server.reply_tool_calls([("show", {"where": "x"})])
        server.reply("a picture")
        await describe(given[0], given)
        history = [{"role": "user", "content": [given[0].to_part()]}, {"role": "assistant", "content": "x"}]
        server.reply("a picture")
        _ = [pair async for pair in chat(history, "x", given[1])]
        describe.preview(given[0], given)
        sent = json.dumps([request.body for request in server.requests])
        for address in addresses(port):
            assert address in sent  # as text: the service may fetch it, if it likes
        assert hits == []
        assert set(lookups) <= {"127.0.0.1", None}, lookups


@pytest.mark.parametrize(
    "url",
    ["FILE:///etc/passwd", "gopher://127.0.0.1/_x", "jar:http://127.0.0.1!/", "//127.0.0.1/x.png", "http:///x.png",
     "https://h\r\nHost: evil/", "data:,x", " http://h/"],
)  # fmt: skip
def test_attack_13_other_schemes_are_refused_when_it_is_made(url):
    with pytest.raises(ValueError):
        ImgUrl(url)


# --- 14: paths --------------------------------------------------------------------------------------------

KEY = (
    b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHI\n-----END OPENSSH PRIVATE KEY-----\n"
)


def odd_files(folder: Path) -> dict[str, Path]:
    """What an attacker would like to see sent."""
    names = "link renamed inside fifo sparse directory socket loop dangling empty"
    files = {"key": folder / "id_rsa", "svg": folder / "picture.svg"}
    files |= {name: folder / f"{name}.png" for name in names.split()}
    files["key"].write_bytes(KEY)
    files["svg"].write_text("<svg onload=alert(1)>")
    files["link"].symlink_to(files["key"])
    files["renamed"].write_text("name,salary\nAnna,100000\n")
    files["inside"].write_bytes(KEY + PNG)
    os.mkfifo(files["fifo"])
    files["sparse"].write_bytes(PNG)
    os.truncate(files["sparse"], 3 * 1024**3)
    files["directory"].mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(files["socket"]))
    files["loop"].symlink_to(files["loop"])
    files["dangling"].symlink_to(folder / "nothing")
    files["empty"].touch()
    system = "/etc/passwd /dev/zero /dev/random /dev/stdin /proc/self/environ /proc/self/mem ~/.ssh/id_rsa a\x00b.png"
    files |= {path: Path(path) for path in system.split(" ")}
    return files | {"up": folder / ".." / ".." / ".." / ".." / "etc" / "passwd", "long": folder / ("x" * 5000)}


@pytest.mark.parametrize("kind", [ImgPath, Audio, File])
def test_attack_14_what_is_no_picture_is_refused_unread(kind, tmp_path):
    for name, path in odd_files(tmp_path).items():
        for given in (path, str(path), os.fsencode(path)):
            with pytest.raises((ValueError, FileNotFoundError)) as caught:
                pytest.fail(f"{name} was taken: {kind(given)}")
            assert b"PRIVATE" not in str(caught.value).encode()


@pytest.mark.parametrize("name", ["link", "renamed", "fifo", "sparse", "directory", "/dev/zero"])
async def test_attack_14_nothing_goes_out_that_was_exchanged_since(name, tmp_path):
    """Made from a real picture, and another file by the time it is sent."""
    picture = tmp_path / "good.png"
    picture.write_bytes(PNG)
    shown = ImgPath(picture)
    files = tmp_path / "files"
    files.mkdir()
    target = odd_files(files)[name]
    picture.unlink()
    picture.symlink_to(target)
    async with LoopbackServer() as server:

        @llm_function(OpenAICompatible("m", base_url=server.base_url))
        async def describe(picture: ImgPath) -> str:
            """Describe."""

        with pytest.raises((ValueError, FileNotFoundError, SimpleLLMFuncError)):
            await describe(shown)
        picture.unlink()
        with pytest.raises((ValueError, FileNotFoundError, SimpleLLMFuncError)):
            await describe(shown)
        assert server.requests == []
        picture.write_bytes(PNG)
        await describe(shown)
        assert base64.b64encode(PNG).decode() in server.requests[0].raw.decode()


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "~/.ssh/id_rsa", "file:///etc/passwd", "../../etc/passwd", "ImgPath('/etc/passwd')"]
)
async def test_attack_14_a_text_is_never_a_path(text, tmp_path, monkeypatch):
    secret = tmp_path / "passwd"
    secret.write_text("root:x:0:0")
    monkeypatch.chdir(tmp_path)
    llm = ScriptedLLM(calling(("look", {"where": text})), "ok", "ok")

    def look(where: str) -> str:
        """Look."""
        return where

    @llm_function(llm, toolkit=[look])
    async def say(question: str, more: list[str], anything: object) -> str:
        """Answer."""

    await say(text, [text, str(secret)], text)
    assert "root:" not in str(llm.requests)
    assert str(secret) in str(llm.requests)


def test_attack_14_an_allowed_folder_holds_also_behind_linked_folders(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (outside / "a.png").write_bytes(PNG)
    (root / "linked").symlink_to(outside)
    with pytest.raises(ValueError, match="outside"):
        ImgPath(root / "linked" / "a.png", root=root)
