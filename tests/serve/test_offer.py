"""What may be offered to callers from outside."""

from __future__ import annotations

import pytest

from SimpleLLMFunc import Audio, ConfigError, File, ImgPath, llm_function
from SimpleLLMFunc.serve.offer import offers
from SimpleLLMFunc.testing import ScriptedLLM


@pytest.mark.parametrize("hint", [ImgPath, ImgPath | None, list[File], Audio])
def test_a_caller_from_outside_cannot_name_files(hint):
    def look(picture):
        """Look."""

    look.__annotations__ = {"picture": hint, "return": str}
    with pytest.raises(ConfigError, match="picture"):
        offers({"look": llm_function(ScriptedLLM())(look)})
