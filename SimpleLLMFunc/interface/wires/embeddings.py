"""Embeddings on the wires that have them: one request for several texts, and the vectors of its reply.

Source: OpenAI's ``POST /embeddings``, Gemini's ``models.batchEmbedContents``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.wires.streams.chunk_reader import bad_reply
from SimpleLLMFunc.interface.wires.wire import Received

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
    try:
        data: Any = decode(body)
    except ValueError:
        data = None
    found: Any = None
    tokens: Any = None
    if isinstance(data, dict) and isinstance(data.get("data"), list):
        items = [each if isinstance(each, dict) else {} for each in data["data"]]
        places = [item.get("index", number) for number, item in enumerate(items)]
        if sorted(map(str, places)) == sorted(map(str, range(len(items)))):
            found = [
                item.get("embedding") for _, item in sorted(zip(places, items, strict=True), key=lambda each: each[0])
            ]
        usage = data.get("usage")
        tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    elif isinstance(data, dict) and isinstance(data.get("embeddings"), list):
        found = [each.get("values") if isinstance(each, dict) else None for each in data["embeddings"]]
    if found is None or len(found) != count or not all(map(_is_vector, found)):
        raise bad_reply(f"it does not hold {count} vectors", body[:2000].decode("utf-8", "replace"), received)
    return [[float(number) for number in vector] for vector in found], tokens if isinstance(tokens, int) else None


def _is_vector(found: Any) -> bool:
    numbers = isinstance(found, list) and all(isinstance(each, (int, float)) for each in found)
    return numbers and bool(found)
