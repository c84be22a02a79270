# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""What a model really writes, read or refused: every step beyond strict JSON leaves a line in the receipt.

No key is needed: `parse_text` is pure. A decorated function reads its answers in the same way and keeps the
receipt in `Result.repairs`.

Model: none is asked; the answers are in `ANSWERS`.
"""

from pydantic import BaseModel

from SimpleLLMFunc import ResponseParseError, parse_text


class Order(BaseModel):
    product: str
    price: float
    paid: bool


ANSWERS = [
    '{"product": "kettle", "price": 24.5, "paid": true}',
    "Sure! Here it is:\n```json\n{'product': 'kettle', 'price': '24.50 EUR', 'paid': 'yes',}\n```",
    '{"order": {"Product": "kettle", "price": "1,024", "paid": true}}',
    '{"product": "kettle", "price": "between 20 and 30", "paid": true}',
    '{"product": "kettle", "price": 24.5',
]


def main() -> None:
    for answer in ANSWERS:
        print(answer)
        try:
            parsed = parse_text(answer, Order)
        except ResponseParseError as error:
            for path, expected, got in error.violations:
                print(f"  refused: {path or 'the answer'}: expected {expected}, got {got}")
        else:
            print(f"  {parsed.value!r}")
            for path, step in parsed.repairs:
                print(f"  {path or 'the answer'}: {step}")


if __name__ == "__main__":
    main()
