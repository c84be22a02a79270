# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[local]"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""The assistant on the small model inside this process: a session, a stream, and no key.

Model: the small `LocalModel`, inside this process. For another one change the line `assistant = AIAssistant(LocalModel(…`.
"""

from SimpleLLMFunc import LocalModel
from SimpleLLMFunc.assistant import AIAssistant


def main() -> None:
    assistant = AIAssistant(LocalModel(), tools=(), language="en", max_tokens=80)
    session = None
    for question in ("What is the capital of France?", "Which river flows through it?"):
        print(f"> {question}")
        for item in assistant.stream_query_sync(question, session):
            match item:
                case str():
                    print(item, end="", flush=True)
                case {"session_id": session}:
                    print()
    print(f"{len(assistant.conversation(str(session)))} messages in the session, the instructions among them")


if __name__ == "__main__":
    main()
