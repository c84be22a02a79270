"""A certificate of our own, and a server's side of TLS with it."""

from __future__ import annotations

import atexit
import functools
import shutil
import ssl
import subprocess
import tempfile
from pathlib import Path


@functools.lru_cache(maxsize=1)
def certificate() -> Path:
    """The file of a certificate for this machine and two others, with its key; nobody trusts it who is not told to."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "certificate.pem"
    names = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1,DNS:far.example,DNS:proxy.example",
    ]
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    where = ["-keyout", str(path), "-out", str(folder / "public.pem")]
    subprocess.run(["openssl", "req", "-x509", *new_key, *names, *where], check=True, capture_output=True)
    with path.open("ab") as file:
        file.write((folder / "public.pem").read_bytes())
    return path


def server_context() -> ssl.SSLContext:
    """The context of a server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate())
    return context
