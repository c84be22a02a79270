# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[cost]", "pypdf"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = "../.." }
# ///
"""A folder of PDF invoices becomes a table.

python pdf_table.py                              # recorded answers, no key
python pdf_table.py my-invoices --model openai:gpt-5-mini
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field
from pypdf import PdfReader

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import use_cassette

HERE = Path(__file__).parent


class Invoice(BaseModel):
    seller: str
    number: str
    day: date = Field(description="the day of the invoice, not the day it is due")
    currency: Literal["EUR", "CHF", "USD"]
    net: Decimal
    tax: Decimal
    total: Decimal


@llm_function(max_reasks=1)
def read_invoice(invoice: str) -> Invoice:
    """Read the invoice. Copy every amount as it is printed; do not calculate."""
    raise NotImplementedError


def text_of(path: Path) -> str:
    """Return the text of a PDF; empty for a scan."""
    return "\n".join(page.extract_text() for page in PdfReader(path).pages).strip()


def table(folder: Path, out: Path) -> int:
    """Read all invoices of `folder`, write ``invoices.csv``, and return the number of files without a row."""
    texts = {path.name: text_of(path) for path in sorted(folder.glob("*.pdf"))}
    readable = {name: text for name, text in texts.items() if text}
    out.mkdir(parents=True, exist_ok=True)
    failed = dict.fromkeys(texts.keys() - readable.keys(), "no text: a scan? Run OCR first.")
    with (
        read_invoice.map(list(readable.values()), checkpoint=out / "run.sqlite", progress=False) as report,
        (out / "invoices.csv").open("w", encoding="utf-8", newline="") as file,
    ):
        rows = csv.DictWriter(file, ["file", *Invoice.model_fields, "adds_up"])
        rows.writeheader()
        for name, row in zip(readable, report.rows, strict=True):
            if row.error is not None:
                failed[name] = str(row.error)
                continue
            invoice = row.value
            rows.writerow({"file": name, **dict(invoice), "adds_up": invoice.net + invoice.tax == invoice.total})
        cost = "unknown" if report.cost is None else f"{report.cost:.4f} USD"
        print(f"{report.counts.asked} asked, {report.counts.restored} from the checkpoint, cost {cost}")
    for name, why in sorted(failed.items()):
        print(f"not read: {name}: {why}")
    print(f"{len(texts) - len(failed)} rows in {out / 'invoices.csv'}")
    return len(failed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 1 where a file has no row."""
    parser = argparse.ArgumentParser(description="Read PDF invoices into a table.")
    parser.add_argument("folder", type=Path, nargs="?", default=HERE / "invoices")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--model", help="openai:gpt-5-mini, anthropic:…, gemini:…, local; without it recorded answers")
    chosen = parser.parse_args(arguments)
    if chosen.model:
        os.environ["SIMPLELLMFUNC_MODEL"] = chosen.model
    with nullcontext() if chosen.model else use_cassette(HERE / "cassette.json", record="none"):
        return int(table(chosen.folder, chosen.out) > 0)


if __name__ == "__main__":
    sys.exit(main())
