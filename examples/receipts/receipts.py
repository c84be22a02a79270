# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
# ///
"""Receipts to a table: a folder of texts and pictures becomes typed rows, a CSV file and a page to look at.

    python receipts.py samples --out out --demo          # no key: a stand-in reads the texts
    python receipts.py my-receipts --out out --model openai:gpt-5-mini

Run it again after adding a receipt, or after it was killed: only what has no row yet is asked for.
"""

from __future__ import annotations

import argparse
import csv
import html
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing, nullcontext
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from SimpleLLMFunc import ImgPath, LLM_Interface, SimpleLLMFuncError, llm_function, use_llm
from SimpleLLMFunc.batch import MapReport, MapRow
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest

PICTURES = {".png", ".jpg", ".jpeg", ".webp"}


class Category(Enum):
    FOOD = "food"
    TRAVEL = "travel"
    OTHER = "other"


class Line(BaseModel):
    article: str
    amount: Decimal


class Receipt(BaseModel):
    shop: str
    day: date
    currency: Literal["CHF", "EUR", "GBP", "CNY"]
    lines: list[Line] = Field(min_length=1)
    total: Decimal = Field(description="as printed, not added up by you")
    category: Category

    @model_validator(mode="after")
    def adds_up(self) -> Receipt:
        """A misread amount shows here, and the model is asked again."""
        added = sum((line.amount for line in self.lines), Decimal())
        if added != self.total:
            raise ValueError(f"the lines add up to {added}, and the total says {self.total}")
        return self


@llm_function(max_reasks=1)
def read_receipt(receipt: str | ImgPath) -> Receipt:
    """Read the receipt. Take every article with its amount; where something cannot be read, do not guess."""
    raise NotImplementedError


# --- in ---


def receipts_in(folder: Path) -> tuple[list[str], list[str | ImgPath]]:
    """Return the names of the receipts in a folder, and the receipts."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in {".txt", *PICTURES})
    if not paths:
        raise SystemExit(f"There are no receipts (.txt, .png, .jpg, .webp) in {folder}.")
    read = [ImgPath(path) if path.suffix.lower() in PICTURES else path.read_text("utf-8") for path in paths]
    return [path.name for path in paths], read


# --- out ---


def write_csv(path: Path, names: Sequence[str], report: MapReport[Receipt]) -> None:
    """Write a line for each article, as a spreadsheet wants it."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "shop", "day", "currency", "category", "article", "amount"])
        for name, row in zip(names, report.rows, strict=True):
            if row.error is None:
                told = row.value
                for line in told.lines:
                    fixed = [name, told.shop, told.day, told.currency, told.category.value]
                    table.writerow([*fixed, line.article, line.amount])


def write_page(path: Path, names: Sequence[str], report: MapReport[Receipt]) -> None:
    """Write a page that shows what was read, what was not, and the sums."""
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    shown: list[str] = []
    for name, row in zip(names, report.rows, strict=True):
        if row.error is None:
            sums[row.value.currency, row.value.category.value] += row.value.total
        shown.append(_table_row(name, row))
    totals = [
        _cells("td", [currency, category, f"{total:.2f}"]) for (currency, category), total in sorted(sums.items())
    ]
    path.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>Receipts</title><style>body{font:16px/1.5 system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem}"
        "table{border-collapse:collapse;width:100%;margin:1rem 0}td,th{padding:.3rem .6rem;text-align:left;"
        "border-bottom:1px solid #ccc}td:nth-child(n+3):last-child{text-align:right}td:first-child{white-space:nowrap}.failed{color:#a00}</style>"
        f"<h1>Receipts</h1><table>{_cells('th', ['file', 'shop', 'day', 'category', 'total'])}{''.join(shown)}</table>"
        f"<h2>Sums</h2><table>{_cells('th', ['currency', 'category', 'total'])}{''.join(totals)}</table>",
        encoding="utf-8",
    )


def _table_row(name: str, row: MapRow[Receipt]) -> str:
    if row.error is not None:
        return f"<tr class=failed><td>{html.escape(name)}<td colspan=4>{html.escape(str(row.error)[:200])}"
    told = row.value
    return _cells("td", [name, told.shop, str(told.day), told.category.value, f"{told.total:.2f} {told.currency}"])


def _cells(kind: str, texts: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{html.escape(text)}" for text in texts)


# --- a stand-in for a model, so that the program can be tried without a key ---

_AMOUNT = re.compile(r"^(?P<article>\S.*?)[ .]+(?P<amount>\d+[.,]\d\d)$")
_WORDS = {Category.FOOD: "gipfeli coffee plat espresso apples cake", Category.TRAVEL: "fahrt taxi"}
_MONTHS = {"march": 3}


def stand_in(request: ScriptedRequest) -> str:
    """Read a receipt by rules, as far as rules go: it cannot see pictures, and does not add up."""
    parts = request.messages[1]["content"]  # a request that asks again has more behind it
    asked = parts if isinstance(parts, str) else "".join(str(part.get("text", "")) for part in parts or [])
    text = "\n".join(line.strip() for line in asked.partition("receipt:")[2].splitlines()).strip()
    if not text:
        return "I cannot see pictures."
    shop = text.splitlines()[0].split("  ")[0]
    found = [match for line in text.splitlines() if (match := _AMOUNT.match(line))]
    lines = [{"article": m["article"], "amount": m["amount"].replace(",", ".")} for m in found]
    totals = [line for line in lines if re.match("total|合计", line["article"].lower())]
    words = text.lower()
    category = next((kind for kind, known in _WORDS.items() if any(w in words for w in known.split())), Category.OTHER)
    told = {
        "shop": shop,
        "day": _day(text),
        "currency": next(code for code in ("CHF", "EUR", "GBP", "CNY") if code in text),
        "lines": [line for line in lines if line not in totals],
        "total": totals[0]["amount"],
        "category": category.value,
    }
    return json.dumps(told, ensure_ascii=False)


def _day(text: str) -> str:
    if found := re.search(r"(\d{4})[-年](\d\d?)[-月](\d\d?)", text):
        year, month, day = found.groups()
    elif found := re.search(r"(\d\d)[./](\d\d)[./](\d{4})", text):
        day, month, year = found.groups()
    else:
        found = re.search(r"(\d\d?) (\w+) (\d{4})", text)
        assert found, "a date in words"
        day, month, year = found[1], str(_MONTHS[found[2].lower()]), found[3]
    return date(int(year), int(month), int(day)).isoformat()


def main(arguments: Sequence[str] | None = None) -> int:
    """Read a folder of receipts; 1 where one of them could not be read."""
    parser = argparse.ArgumentParser(description="Read receipts into a table.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--demo", action="store_true", help="let a stand-in read, without a key")
    parser.add_argument("--model", help="openai:gpt-5-mini, anthropic:…, gemini:…, local")
    chosen = parser.parse_args(arguments)
    if chosen.model:
        os.environ["SIMPLELLMFUNC_MODEL"] = chosen.model
    chosen.out.mkdir(parents=True, exist_ok=True)
    names, receipts = receipts_in(chosen.folder)
    model: LLM_Interface | None = ScriptedLLM(stand_in, repeat=True) if chosen.demo else None
    try:
        with use_llm(model) if model else nullcontext():
            report = read_receipt.map(receipts, checkpoint=chosen.out / "run.sqlite")
    except SimpleLLMFuncError as error:
        print(error, file=sys.stderr)
        return 2
    with closing(report):
        write_csv(chosen.out / "receipts.csv", names, report)
        write_page(chosen.out / "receipts.html", names, report)
        counts = report.counts
        print(f"{counts.rows} receipts: {counts.asked} read now, {counts.restored} known, {counts.failed} not readable")
        print(f"{chosen.out / 'receipts.csv'}  {chosen.out / 'receipts.html'}")
        return int(counts.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
