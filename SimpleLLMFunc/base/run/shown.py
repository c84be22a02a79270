"""What shows itself in notebooks, and on terminals with `rich`."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rich.console import RenderableType


class Shown:
    """Shows itself as a card of `display`, a room above: it is loaded when the card is shown.

    Attributes:
        card: ``module:function``, which makes the card of an object of this class.
    """

    __slots__ = ()

    card: ClassVar[str]

    def _repr_html_(self) -> str:
        html: str = _display("as_html")(resolve_name(self.card)(self))
        return html

    def __rich__(self) -> RenderableType:
        shown: RenderableType = _display("as_rich")(resolve_name(self.card)(self))
        return shown


def _display(name: str) -> Any:
    return resolve_name(f"SimpleLLMFunc.display.cards:{name}")
