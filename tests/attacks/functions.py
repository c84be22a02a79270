"""The functions and chats that most attacks are made on; what matters is what they are given."""

from SimpleLLMFunc import llm_chat, llm_function


def asking(llm, returns=str, **options):
    async def ask(question: str) -> returns:
        """Answer."""

    return llm_function(llm, **options)(ask)


def talking(llm, **options):
    async def chat(history: list, message: str):
        """Talk."""
        yield

    return llm_chat(llm, **options)(chat)


async def drained(items):
    return [item async for item in items]
