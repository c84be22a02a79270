"""Run every script of a folder and print, as JSON, what Python prints of the error that ends each."""

import io
import json
import sys
from pathlib import Path
from traceback import walk_tb

FOLDER = Path(sys.argv[1])


def run(path: Path) -> dict[str, object]:
    source = path.read_text("utf-8")
    kept, sys.stderr = sys.stderr, io.StringIO()
    try:
        exec(compile(source, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
    except BaseException as error:
        assert error.__traceback__ is not None
        error.__traceback__ = error.__traceback__.tb_next  # without the frame of this function
        sys.excepthook(type(error), error, error.__traceback__)
        frames = [frame for frame, _ in walk_tb(getattr(error, "whole_traceback", None))]
        ours = [each for each in frames if str(each.f_globals.get("__name__")).startswith("SimpleLLMFunc.")]
        return {
            "source": source, "printed": sys.stderr.getvalue(), "kind": type(error).__name__,
            "said": str(error).rpartition("\n")[2], "frames_of_ours": len(ours),
            "functions": [each.f_code.co_name for each in ours],
        }  # fmt: skip
    finally:
        sys.stderr = kept
    return {"source": source, "printed": "", "kind": "", "said": "", "frames_of_ours": 0, "functions": []}


json.dump({path.stem: run(path) for path in sorted(FOLDER.glob("*.py"))}, sys.stdout)
