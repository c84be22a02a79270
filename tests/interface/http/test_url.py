"""Addresses, taken apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.http.url import Url, parsed_url


@pytest.mark.parametrize(
    ("text", "url", "authority"),
    [
        ("http://host", Url("http", "host", 80, "/"), "host"),
        ("HTTPS://API.Example/v1", Url("https", "api.example", 443, "/v1"), "api.example"),
        ("https://host:443/v1?a=b&c", Url("https", "host", 443, "/v1?a=b&c"), "host"),
        ("https://host:8443/#part", Url("https", "host", 8443, "/"), "host:8443"),
        ("http://[::1]:8080/v1", Url("http", "::1", 8080, "/v1"), "[::1]:8080"),
        ("http://host/a b/ü?q=ü ü", Url("http", "host", 80, "/a%20b/%C3%BC?q=%C3%BC%20%C3%BC"), "host"),
        ("http://host/a%20b?x=%2F", Url("http", "host", 80, "/a%20b?x=%2F"), "host"),
        ("http://bücher.example/", Url("http", "xn--bcher-kva.example", 80, "/"), "xn--bcher-kva.example"),
        ("http://u:p%40ss@host:1/", Url("http", "host", 1, "/", ("u", "p@ss")), "host:1"),
    ],
)
def test_an_address_is_taken_apart(text, url, authority):
    assert parsed_url(text) == url
    assert url.authority == authority


@pytest.mark.parametrize(
    "text", ["", "host", "ftp://host/", "http://", "http://:80/", "http://h:0/", "http://h:99999/", "http://[bad", "http://a b/", "http://straße.example/",
             "http://\x00/", "http://" + "ü" * 300 + "/"],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(text):
    with pytest.raises(ConfigError, match="http or https address"):
        parsed_url(text)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/other?x=1", "http://host:81/other?x=1"),
        ("sibling", "http://host:81/v1/sibling"),
        ("//other/x", "http://other/x"),
        ("https://host/x", "https://host/x"),
        ("", "http://host:81/v1/chat"),
    ],
)
def test_a_location_is_seen_from_the_address(location, target):
    assert str(parsed_url("http://host:81/v1/chat").join(location)) == target


def test_a_login_is_shown_nowhere():
    url = parsed_url("http://user:a-password@host/v1")
    assert "a-password" not in str(url) + repr(url)


@given(st.text(max_size=40))
def test_no_text_makes_a_head_of_two_lines(text):
    try:
        url = parsed_url(f"http://host/{text}")
    except ConfigError:
        return
    assert url.target.isascii()
    assert url.target.isprintable()
    assert " " not in url.target
