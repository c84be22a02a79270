"""The command line inside this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from SimpleLLMFunc.cli.main import main


def typed(*words: object, code: int = 0, text: str | None = None) -> Result:
    """Run the command with these words and `text` on its standard input, and check the code it ends with."""
    done = CliRunner().invoke(main, [str(word) for word in words], input=text)
    assert done.exit_code == code, done.output + repr(done.exception)
    return done
