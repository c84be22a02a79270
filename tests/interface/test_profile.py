import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.profile import PROFILES, Profile, find_profile


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://api.openai.com/v1", "openai"), ("https://API.OPENAI.COM/v1", "openai"),
        ("https://my-resource.openai.azure.com/openai/v1", "azure"), ("https://api.deepseek.com", "deepseek"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini"),
        ("https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi", "vertex"),
        ("https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1", "bedrock"),
        ("https://r.services.ai.azure.com/anthropic", "azure-foundry"),
        ("http://localhost:11434/v1", "ollama"), ("http://127.0.0.1:11434/v1", "ollama"),
        *((address, "openai-compatible") for address in (
            "http://localhost:8000/v1", "https://evil-api.openai.com.example/v1", "https://notapi.openai.com.evil/v1",
            "https://fakeapi.deepseek.com")),
    ],
)  # fmt: skip
def test_the_address_tells_the_provider(base_url, name):
    assert find_profile(None, base_url).name == name


def test_what_is_asked_for_comes_first_and_an_unknown_name_is_refused_with_the_known_ones():
    own, address = Profile("mine", native=True), "https://api.openai.com/v1"
    assert find_profile(own, address) is own
    for name, profile in PROFILES.items():
        assert find_profile(name, address) is profile
        assert profile.name == name
    with pytest.raises(ConfigError, match="deepseek"):
        find_profile("nope", address)


def test_a_profile_pickled_before_a_field_was_new_keeps_its_fields():
    old = ["mine", True, False, "json", True, True, False, "max_tokens", True, False, False, 5]
    profile = object.__new__(Profile)
    profile.__setstate__(old)
    assert profile == Profile("mine", native=True, tools="json", logprobs=5)
