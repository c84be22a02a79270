import os
import ssl
import threading
from importlib import import_module

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.http.environment import load_tls_context, proxy_for, tls_context
from SimpleLLMFunc.interface.http.url import parsed_url
from SimpleLLMFunc.logger.redact import redact


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith("SSL_CERT"):
            monkeypatch.delenv(name)


def proxy_of(url):
    proxy = proxy_for(parsed_url(url))
    return None if proxy is None else (str(proxy.url), proxy.headers)


def test_without_a_proxy_the_way_is_direct():
    assert proxy_of("https://far.example/v1") is None


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
def test_the_environment_names_the_proxy(monkeypatch, name):
    monkeypatch.setenv(name, "http://proxy.example:3128")
    assert proxy_of("https://far.example/v1") == ("http://proxy.example:3128", {})


def test_an_environment_that_is_another_object_is_read_as_well(monkeypatch):
    monkeypatch.setattr(os, "environ", {"https_proxy": "http://proxy.example:3128"})
    assert proxy_of("https://far.example/v1") == ("http://proxy.example:3128", {})
    monkeypatch.setattr(os, "environ", {})
    assert proxy_of("https://far.example/v1") is None


def test_the_environment_is_read_anew_for_each_request(monkeypatch):
    for _ in range(2):
        monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
        assert proxy_of("https://far.example/v1") is not None
        monkeypatch.delenv("https_proxy")
        assert proxy_of("https://far.example/v1") is None


def test_each_scheme_has_its_own(monkeypatch):
    monkeypatch.setenv("http_proxy", "proxy.example:3128")
    assert proxy_of("http://far.example/v1") == ("http://proxy.example:3128", {})
    assert proxy_of("https://far.example/v1") is None


@pytest.mark.parametrize("listed", ["far.example", "*", "x.example, .example", "far.example:443"])
def test_no_proxy_goes_the_direct_way(monkeypatch, listed):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", listed)
    assert proxy_of("https://far.example/v1") is None
    other = proxy_of("https://other.test/v1")
    assert other == (None if listed == "*" else ("http://proxy.example:3128", {}))


def test_a_login_goes_into_a_header_and_into_no_text(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://user:proxy-password@proxy.example:3128")
    proxy, headers = proxy_of("https://far.example/v1")
    assert proxy == "http://proxy.example:3128"
    assert headers == {"Proxy-Authorization": "Basic dXNlcjpwcm94eS1wYXNzd29yZA=="}
    assert "proxy-password" not in redact("it said proxy-password")
    assert "dXNlcjpwcm94" not in redact("it said dXNlcjpwcm94eS1wYXNzd29yZA==")


def test_another_kind_of_proxy_is_refused(monkeypatch):
    monkeypatch.setenv("all_proxy", "socks5://proxy.example:1080")
    with pytest.raises(ConfigError, match="socks5"):
        proxy_of("https://far.example/v1")


def test_the_context_verifies_and_is_made_once():
    context = tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert tls_context() is context


async def test_certificates_are_read_off_the_event_loop(monkeypatch):
    network = import_module("SimpleLLMFunc.interface.http.environment")
    monkeypatch.setattr(network, "_contexts", {})
    threads = []
    real = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: threads.append(threading.get_ident()) or real())
    await load_tls_context()
    await load_tls_context()
    assert isinstance(tls_context(), ssl.SSLContext)
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


def test_the_contexts_kept_are_few(monkeypatch):
    network = import_module("SimpleLLMFunc.interface.http.environment")
    monkeypatch.setattr(network, "_contexts", {})
    monkeypatch.setattr(ssl, "create_default_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    for number in range(100):
        monkeypatch.setenv("SSL_CERT_DIR", f"/certificates/{number}")
        tls_context()
    assert len(network._contexts) <= 8
