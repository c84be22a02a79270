"""Wrong uses: each line marked `# wrong` must be reported by mypy --strict and by pyright, and no other line."""

from __future__ import annotations

from api import Teacher, agrade, chat, grade, ideas


def uses() -> None:
    grade(3)  # wrong
    grade("x", strict="yes")  # wrong
    grade("x", unknown=1)  # wrong
    grade()  # wrong
    grade.call(3)  # wrong
    grade.stream(3)  # wrong
    grade.events(3)  # wrong
    grade.preview(3)  # wrong
    grade.with_options(max_reasks=1)(3)  # wrong
    agrade(3)  # wrong
    agrade.call(3)  # wrong
    ideas(3)  # wrong
    chat([], 3)  # wrong
    Teacher().grade(3)  # wrong
    Teacher().grade.call(3)  # wrong
    text: str = grade("x")  # wrong
    print(text)
    grade("x").upper()  # wrong
    for item in ideas("x"):
        item.missing()  # wrong
    grade.map(["x"], concurrency="fast")  # wrong
    grade.map(["x"], on_error="ignore")  # wrong
    grade.map(["x"], engine="elsewhere")  # wrong
    agrade.map(["x"], unknown=1)  # wrong
    grade.map(["x"]).rows[0].value.upper()  # wrong
