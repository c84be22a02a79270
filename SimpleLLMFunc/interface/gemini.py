"""Gemini: Google's models, behind ``generateContent``."""

from __future__ import annotations

from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.service_model import ServiceModel
from SimpleLLMFunc.interface.wires import Wire, gemini_family
from SimpleLLMFunc.interface.wires.gemini import GeminiWire


class Gemini(ServiceModel):
    """A model behind Google's generateContent; the key is GOOGLE_API_KEY, else GEMINI_API_KEY.

    The address is GOOGLE_GEMINI_BASE_URL, without a version; `api_version` is "v1beta" unless it is said. The other
    arguments are those of `OpenAICompatible`, without `wire` and `client`.
    """

    own_provider = "gemini"
    own_url = "https://generativelanguage.googleapis.com"
    url_variable = "GOOGLE_GEMINI_BASE_URL"
    key_variables = ("GOOGLE_API_KEY", "GEMINI_API_KEY")

    def _wire(self, service: str) -> Wire:
        return GeminiWire(service, self.api_version or GeminiWire.version_spoken)

    def _profile(self, address: str) -> Profile:  # noqa: ARG002 - of this maker, the model decides
        takes_both = gemini_family(self.model_name).schema_with_tools
        return Profile("gemini", native=True, schema_with_tools=takes_both, logprobs=20)
