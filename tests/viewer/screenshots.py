"""`make screenshots`: the page, filled by real runs of scripted models, as pictures in docs/images.

    python -m tests.viewer.screenshots [FOLDER]

Needs chromium, and the packages playwright and pillow.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from SimpleLLMFunc.observability.store import RunQuery, TraceStore
from SimpleLLMFunc.viewer import viewer_app
from SimpleLLMFunc.viewer.security import new_token
from tests.viewer import shop
from tests.viewer.filled import fill
from tests.viewer.served import PHONE, Served, Visit, opened_browser

FOLDER = Path(__file__).parents[2] / "docs" / "images"
MOST_BYTES = 150_000


def nothing(_tab: Any) -> None:
    """Show the place as it is."""


def filter_more(tab: Any) -> None:
    tab.click("text=More filters")


def try_two(tab: Any) -> None:
    tab.click("text=Two columns")
    tab.locator("summary:has-text('Change for this try')").nth(1).click()
    tab.fill("#variant-B-docstring", "Read the order out of a letter. Prices are in euros.")
    tab.fill("#variant-B-temperature", "0.2")
    tab.click("form button.first")
    tab.wait_for_selector("text=Compared")


def talk(tab: Any) -> None:
    for at, message in enumerate(("When do you open?", "And on Sundays?"), 1):
        tab.fill(".say textarea", message)
        tab.keyboard.press("Enter")
        tab.wait_for_selector(f".bubble:has-text('Answer number {at}')")
        tab.wait_for_selector(".say button.first:not(:disabled)")


@dataclass(frozen=True)
class Picture:
    """One picture; `{run}` in its place is the run with everything in it, `{agent}` one with runs inside."""

    name: str
    place: str
    waiting_for: str
    work: Callable[[Any], None] = nothing
    height: int = 800
    context: dict[str, Any] = field(default_factory=dict)


PICTURES = [
    Picture("runs", "/runs?function=read_order&sort=cost", "tbody tr", filter_more, height=900),
    Picture("tree", "/run/{agent}", ".fall .row", height=760),
    Picture("compare", "/compare?a={other}&b={run}", ".diff", height=980),
    Picture("run", "/run/{run}", ".fall .row", height=1100),
    Picture("versions", "/function/read_order", ".diff", height=1180),
    Picture("playground", "/play/read_order?run={run}", "form", try_two, height=1500),
    Picture("chat", "/chat/clerk", ".talk", talk, height=620), Picture("map", "/map/0", ".rows", height=760),
    Picture("runs-zh-dark", "/runs", "tbody tr", context={"locale": "zh-CN", "color_scheme": "dark"}),
    Picture("run-phone", "/run/{run}", ".fall .row", context=PHONE),
    Picture("run-phone-dark", "/run/{run}", ".fall .row", context={**PHONE, "color_scheme": "dark"}),
]  # fmt: skip


def small(png: bytes) -> bytes:
    """Return a picture with as many colours as it needs, at most 256, and in at most `MOST_BYTES`."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in (256, 128, 64, 32):
        out = io.BytesIO()
        reduced = picture.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        reduced.save(out, "PNG", optimize=True)
        if out.tell() <= MOST_BYTES:
            break
    return out.getvalue()


def take(folder: Path) -> list[Path]:
    """Write all pictures into `folder`, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    folder = folder.resolve()
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        # Relative paths: what the page shows of them is the same on every machine.
        path, checkpoint, trace_id = fill(Path())
        with TraceStore(path) as store:
            found = store.reader.run(trace_id)
            assert found is not None, "it was kept"
            (agent,) = store.reader.runs(RunQuery(function="clerk_agent")).runs
            other = store.reader.runs(RunQuery(version=found.summary.version)).runs[1]
            places = {"run": found.summary.id, "agent": agent.id, "other": other.id}
            app = viewer_app(store, allow_run=[shop], checkpoints=[checkpoint], cases="cases", token=new_token())
            with Served(app) as served, opened_browser() as browser:
                for picture in PICTURES:
                    made.append(_taken(picture, browser, served.address, places, folder))
    return made


def _taken(picture: Picture, browser: Any, address: str, places: dict[str, int], folder: Path) -> Path:
    context = {"viewport": {"width": 1280, "height": picture.height}, "device_scale_factor": 1.5, **picture.context}
    with Visit(browser, address, **context) as visit:
        tab = visit.go(picture.place.format(**places), picture.waiting_for)
        picture.work(tab)
        tab.evaluate("document.activeElement.blur()")
        tab.mouse.move(2, 2)
        tab.wait_for_timeout(400)
        png = tab.screenshot()
        if visit.problems:
            raise SystemExit(f"{picture.name}: {visit.problems}")
    path = folder / f"{picture.name}.png"
    path.write_bytes(small(png))
    return path


if __name__ == "__main__":
    for each in take(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        sys.stdout.write(f"{each}  {each.stat().st_size // 1000} kB\n")
