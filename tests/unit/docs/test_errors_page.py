"""Every slug of an error and every kind of a problem has its paragraph in docs/errors.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "profiler" / "rankscope"
PAGE = ROOT / "docs" / "errors.md"

_PLACE_OF_KIND = {"_problem": 1, "_note": 1, "lost": 2}
"""Functions that make a problem, and which of their arguments is the kind."""


def kinds_in(source: str) -> Iterator[str]:
    """The literal slugs and kinds in a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            key = "slug" if name.endswith("Error") else "kind" if name in ("Problem", "ProblemRow") else None
            given = [keyword.value for keyword in node.keywords if keyword.arg == key]
            place = _PLACE_OF_KIND.get(name) if name == "lost" or "Problem(" in source else None
            if place is not None and len(node.args) > place:
                given.append(node.args[place])
            yield from (v.value for v in given if isinstance(v, ast.Constant) and isinstance(v.value, str))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "slug" in names and isinstance(node.value.value, str):
                yield node.value.value
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "_REPAIR_TEXT" in names:
                yield from (k.value for k in node.value.keys if isinstance(k, ast.Constant))  # type: ignore[misc]


def used_kinds() -> set[str]:
    return {kind for path in SOURCES.rglob("*.py") for kind in kinds_in(path.read_text())}


def documented_kinds() -> set[str]:
    headings = re.findall(r"^### (.+)$", PAGE.read_text(), re.MULTILINE)
    return {kind.strip() for heading in headings for kind in heading.split(",")}


def test_the_search_finds_kinds_of_every_sort() -> None:
    assert {"usage", "truncated", "killed", "rank-outside", "no-steps", "surrogate"} <= used_kinds()


def test_every_kind_is_documented() -> None:
    assert used_kinds() - documented_kinds() == set()


def test_every_documented_kind_exists() -> None:
    assert documented_kinds() - used_kinds() == set()
