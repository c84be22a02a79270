"""The same exchange through a client of the openai package that the user brought (`client=`), and copies of it per event loop."""

from __future__ import annotations

from SimpleLLMFunc.interface.http.openai_client.exchange import ClientExchange, check_client, to_openai, warm_up_clients
from SimpleLLMFunc.interface.http.openai_client.loops import ClientPerLoop, OwnClients
from SimpleLLMFunc.interface.http.openai_client.sent import is_wrapped

__all__ = [
    "ClientExchange", "ClientPerLoop", "OwnClients", "check_client", "is_wrapped", "to_openai", "warm_up_clients",
]  # fmt: skip
