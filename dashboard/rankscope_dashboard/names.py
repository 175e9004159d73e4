"""Names that clients give: kept to be shown, never used as paths."""

from __future__ import annotations

import unicodedata

LONGEST_NAME = 200
MOST_TAGS = 50
LONGEST_TAG = 200


def shown_name(text: str, default: str) -> str:
    """The name without control and invisible characters and without the way to it, 200 characters at most.

    >>> shown_name("../../etc/rank0.json", "file")
    'rank0.json'
    >>> shown_name("..", "file")
    'file'
    """
    visible = "".join(c for c in text if unicodedata.category(c)[0] != "C" and c not in "\u2028\u2029")
    last = visible.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].strip()
    return default if last.strip(".") == "" else last[-LONGEST_NAME:]


def shown_text(text: str, longest: int = LONGEST_NAME) -> str:
    """Free text without control and invisible characters."""
    return "".join(c for c in text if unicodedata.category(c)[0] != "C").strip()[:longest]


def make_unique(names: list[str]) -> list[str]:
    """The names, numbered where they repeat.

    >>> make_unique(["a.json", "b.json", "a.json"])
    ['a.json', 'b.json', 'a.json (2)']
    """
    taken: set[str] = set()
    counts: dict[str, int] = {}
    unique = []
    for name in names:
        candidate = name
        while candidate in taken:
            counts[name] = counts.get(name, 1) + 1
            candidate = f"{name} ({counts[name]})"
        taken.add(candidate)
        unique.append(candidate)
    return unique
