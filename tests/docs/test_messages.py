"""The table of messages holds every message, and no message uses a private word."""

from __future__ import annotations

from pathlib import Path

from tests.docs.messages import Told, messages
from tests.docs.test_words import found

SHOP = """
raise ConfigError(f"{name}: there is no folder {path}. " "Make it.")
raise ConfigError(name)
push_warning("late" if late else "the clock stands", once=True)
click.option("--min", help="The " + word + " score.")
@click.command()
def shop(): "Open the shop."
"""


def test_a_message_is_read_as_it_will_be_shown(tmp_path: Path) -> None:
    room = tmp_path / "shop"
    room.mkdir()
    (room / "lamp.py").write_text(SHOP, "utf-8")
    assert sorted(messages(room), key=lambda told: told.place) == [
        Told("shop/lamp.py:2", "ConfigError", "{name}: there is no folder {path}. Make it."),
        Told("shop/lamp.py:4", "push_warning", "late | the clock stands"),
        Told("shop/lamp.py:5", "option", "The {word} score."),
        Told("shop/lamp.py:7", "--help", "Open the shop."),
    ]


def test_no_message_has_a_private_word() -> None:
    said = list(messages())
    kinds = {"ConfigError", "CheckpointError", "push_warning", "option", "--help", "text", "Refusal", "ModelRetry"}
    assert kinds <= {told.kind for told in said}
    assert len(said) > 1000
    assert [told for told in said if found(told.text)] == []
