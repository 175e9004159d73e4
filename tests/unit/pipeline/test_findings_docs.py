"""Every rule is explained where `Finding.rule` says it is."""

from __future__ import annotations

import re
from pathlib import Path

from rankscope.pipeline import findings

DOCS = Path(__file__).resolve().parents[3] / "docs" / "findings.md"


def test_every_rule_is_explained_and_no_other() -> None:
    rules = re.findall(r'rule="([^"]+)"', Path(findings.__file__).read_text(encoding="utf-8"))
    assert len(rules) >= 4
    explained = re.findall(r"^## (.+)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(explained) == sorted(set(rules))
