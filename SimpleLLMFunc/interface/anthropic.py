"""Anthropic: Claude, and every server that speaks ``/v1/messages``."""

from __future__ import annotations

from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.service_model import ServiceModel
from SimpleLLMFunc.interface.wires import Wire, claude_family
from SimpleLLMFunc.interface.wires.messages import MessagesWire


class Anthropic(ServiceModel):
    """A model behind the Messages API; the key is ANTHROPIC_API_KEY, the address ANTHROPIC_BASE_URL (without ``/v1``).

    The arguments are those of `OpenAICompatible`, without `wire` and `client`. `api_version` is what the header
    `anthropic-version` says.
    """

    own_provider = "anthropic"
    own_url = "https://api.anthropic.com"
    url_variable = "ANTHROPIC_BASE_URL"
    key_variables = ("ANTHROPIC_API_KEY",)

    def _wire(self, service: str) -> Wire:
        return MessagesWire(service, self.api_version or MessagesWire.version_spoken, self.prompt_cache == "auto")

    def _profile(self, address: str) -> Profile:  # noqa: ARG002 - of this maker, the model decides
        family = claude_family(self.model_name)
        return Profile("messages", native=family.native, strict=True, forces_tools=family.forced)
