"""Embeddings on the wires that have them: one request for several texts, and the vectors of its reply.

Source: OpenAI's ``POST /embeddings``, Gemini's ``models.batchEmbedContents``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.body_json import decoded, head_of
from SimpleLLMFunc.interface.wires.streams.events import bad_reply
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import index_of, mapping, mappings

MOST_TEXTS = 100
"""Texts in a request, as Gemini allows."""


def embedding_request(
    wire: str, model: str, texts: Sequence[str], params: Mapping[str, Any], version: str
) -> tuple[str, dict[str, Any]]:
    """Return path and body of a request.

    Raises:
        ConfigError: the wire has no embeddings.
    """
    if wire in {"chat", "responses"}:
        return "/embeddings", {"model": model, "input": list(texts), "encoding_format": "float", **params}
    if wire != "gemini":
        raise ConfigError(f"{model}: the service has no embeddings. OpenAICompatible, Gemini and LocalModel give them.")
    name = f"models/{model.removeprefix('models/')}"
    requests = [{"model": name, "content": {"parts": [{"text": text}]}, **params} for text in texts]
    return f"/{version}/{quote(name)}:batchEmbedContents", {"requests": requests}


def read_embeddings(body: bytes, received: Received, count: int) -> tuple[list[list[float]], int | None]:
    """Return the vectors in the order of the texts, and the tokens that were read where the service tells.

    Raises:
        AttemptFailed: it is no such reply, or has another number of vectors.
    """
    data = mapping(decoded(body, None))
    items = mappings(data.get("data")) or mappings(data.get("embeddings"))
    found = {index_of(item, place): item.get("embedding") or item.get("values") for place, item in enumerate(items)}
    vectors: list[Any] = [found.get(place) for place in range(count)]
    if len(items) != count or not all(map(_is_vector, vectors)):
        raise bad_reply(f"it does not hold {count} vectors", head_of(body), received)
    tokens = mapping(data.get("usage")).get("prompt_tokens")
    return [[float(number) for number in vector] for vector in vectors], tokens if isinstance(tokens, int) else None


def _is_vector(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(each, (int, float)) for each in found)
