"""The help of every command says what it was written to say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rankscope.cli.app import app


def commands(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *words, name)


ALL = dict(commands(typer.main.get_command(app)))


def test_all_commands_are_looked_at() -> None:
    assert len(ALL) > 9
    assert ("baseline", "update") in ALL


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_no_text_stands_in_brackets_since_the_terminal_takes_them_for_markup(words: tuple[str, ...]) -> None:
    texts = [getattr(param, "help", None) or "" for param in ALL[words].params]
    assert [text for text in [ALL[words].help or "", *texts] if "[" in text] == []


def test_the_default_of_an_option_without_a_value_is_said() -> None:
    shown = CliRunner().invoke(app, ["analyze", "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert shown.exit_code == 0
    assert "one per core" in shown.output
