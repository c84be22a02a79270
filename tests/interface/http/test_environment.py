import ssl

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.http.environment import proxy_for, tls_context
from SimpleLLMFunc.logger.redact import redact


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
def test_the_environment_names_the_proxy(monkeypatch, name):
    monkeypatch.setenv(name, "http://proxy.example:3128")
    assert proxy_for("https://far.example/v1") == "http://proxy.example:3128"


def test_each_scheme_has_its_own(monkeypatch):
    assert proxy_for("http://far.example/v1") is None
    monkeypatch.setenv("http_proxy", "proxy.example:3128")
    assert proxy_for("http://far.example/v1") == "http://proxy.example:3128"
    assert proxy_for("https://far.example/v1") is None


@pytest.mark.parametrize("listed", ["far.example", "*", "x.example, .example", "far.example:443, near.test:80"])
def test_no_proxy_goes_the_direct_way(monkeypatch, listed):
    monkeypatch.setenv("all_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", listed)
    assert proxy_for("https://far.example/v1") is None
    assert (proxy_for("http://near.test/v1") is None) is (listed == "*" or ":80" in listed)
    other = proxy_for("https://other.test/v1")
    assert other == (None if listed == "*" else "http://proxy.example:3128")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_this_machine_needs_no_proxy(monkeypatch, host):
    monkeypatch.setenv("all_proxy", "http://proxy.example:3128")
    assert proxy_for(f"http://{host}:8000/v1") is None


def test_a_login_is_masked_in_every_text(monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://user:proxy-password@proxy.example:3128")
    assert proxy_for("https://far.example/v1") == "http://user:proxy-password@proxy.example:3128"
    assert "proxy-password" not in redact("it said proxy-password")
    assert redact("it said dXNlcjpwcm94eS1wYXNzd29yZA==") == "it said ***"


@pytest.mark.parametrize("address", ["http://", "http://[bad", "http://h:99999", "http://h:0"])
def test_a_proxy_that_has_no_address_is_said(monkeypatch, address):
    monkeypatch.setenv("all_proxy", address)
    with pytest.raises(ConfigError, match="http://host:port"):
        proxy_for("https://far.example/v1")


def test_the_context_verifies_and_is_made_once():
    context = tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert tls_context() is context
