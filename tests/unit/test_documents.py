"""The documents hang together: links lead somewhere, and commands that they name exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("sample_traces/*.md")])
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#([^)]*))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_COMMAND = re.compile(r"`rankscope ([a-z]+)\b")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target, anchor in _LINK.findall(document.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        linked = document.parent / target
        assert linked.exists(), f"{document.name} links to {target}"
        if anchor and linked.suffix == ".md":
            headings = {_slug(h) for h in _HEADING.findall(linked.read_text())}
            assert anchor in headings, f"{document.name} links to #{anchor} in {target}"


def _slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).strip().replace(" ", "-")


def test_what_the_readme_shows_is_what_the_command_prints() -> None:
    """Every line of the block, in order; `...` stands for lines left out."""
    block = re.search(r"```\n\$ rankscope (.+)\n((?:.*\n)*?)```", (ROOT / "README.md").read_text())
    assert block is not None
    done = subprocess.run(
        [sys.executable, "-m", "rankscope.cli.main", *block[1].split(), "--no-cache"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    printed = iter(line.rstrip() for line in done.stdout.splitlines())
    for line in block[2].splitlines():
        assert line == "..." or any(line.rstrip() == other for other in printed), line


def test_every_command_that_the_readme_names_exists() -> None:
    named = set(_COMMAND.findall((ROOT / "README.md").read_text()))
    assert {"analyze", "advise", "check"} <= named
    for command in sorted(named):
        done = subprocess.run(
            [sys.executable, "-m", "rankscope.cli.main", command, "--help"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"rankscope {command}: {done.stderr}"
